// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// ApproverOptions configure an Approver. The zero value works.
type ApproverOptions struct {
	// Namespace is the namespace of the ServiceAccounts of tokens. Empty means Namespace.
	Namespace string
	// Longest is the longest lifetime of a certificate: an hour or more. Zero means 24 hours.
	Longest time.Duration
	// CallTimeout bounds each request. Zero means 10 seconds.
	CallTimeout time.Duration
	// Observer receives events. May be nil.
	Observer *Observer
	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

func (o ApproverOptions) withDefaults() (ApproverOptions, error) {
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	if o.Longest == 0 {
		o.Longest = 24 * time.Hour
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 10 * time.Second
	}
	if o.Longest < time.Hour {
		return o, fmt.Errorf("join: ApproverOptions.Longest is %v: it must be an hour or more", o.Longest)
	}
	if o.CallTimeout < 0 {
		return o, fmt.Errorf("join: ApproverOptions.CallTimeout is %v: it must not be negative", o.CallTimeout)
	}
	return o, nil
}

// Approver approves the requests of clusters that join or renew their certificate, and deletes tokens that have expired.
// Any number of Approvers may run. Make one with NewApprover.
type Approver struct {
	upstream region.API
	opts     ApproverOptions
	queue    *loop.Queue
	requests *loop.Objects
	tokens   *loop.Objects
	targets  *loop.Objects
	started  atomic.Bool
}

// Prefixes of keys in the queue.
const (
	requestKey = "request/"
	tokenKey   = "token/"
)

// NewApprover returns an Approver for the CertificateSigningRequests in upstream. It does no I/O. The error names the wrong
// argument or option.
func NewApprover(upstream region.API, opts ApproverOptions) (*Approver, error) {
	if argument.Missing(upstream) {
		return nil, errors.New("join: the upstream is nil: pass the result of region.APIFor")
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &Approver{upstream: upstream, opts: opts, queue: loop.NewQueue(loop.QueueOptions{})}
	d := upstream.Dynamic()
	a.requests = loop.NewObjects(d, requests, loop.ObjectsOptions{
		Fields:  "spec.signerName=" + certificatesv1.KubeAPIServerClientSignerName,
		Changed: func(key types.NamespacedName) { a.queue.Add(requestKey + key.Name) }, Flows: a.touchAll,
	})
	a.tokens = loop.NewObjects(d, accounts, loop.ObjectsOptions{
		Namespace: opts.Namespace, Labels: tokenLabel + "=true",
		Changed: func(key types.NamespacedName) {
			a.queue.Add(tokenKey + key.Name)
			a.touchRequests()
		}, Flows: a.touchAll,
	})
	a.targets = loop.NewObjects(d, targets, loop.ObjectsOptions{
		Strip:   func(obj *unstructured.Unstructured) { unstructured.RemoveNestedField(obj.Object, "status") },
		Changed: func(types.NamespacedName) { a.touchRequests() }, Flows: a.touchAll,
	})
	return a, nil
}

// Start works until ctx ends, waits for its goroutines, then returns nil. It retries failures. Call it once.
func (a *Approver) Start(ctx context.Context) error {
	if a.upstream == nil {
		return errors.New("join: the Approver was not made by NewApprover")
	}
	if a.started.Swap(true) {
		return errors.New("join: Start was called twice")
	}
	ctx = logging.Into(ctx, a.opts.Logger, "join")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, o := range []*loop.Objects{a.requests, a.tokens, a.targets} {
		wg.Go(func() { _ = o.Start(ctx) })
	}
	return a.queue.Start(ctx, a.work)
}

// touchRequests queues the requests that are not decided.
func (a *Approver) touchRequests() {
	for _, obj := range a.requests.List() {
		if r, err := decode(obj); err == nil && !isDecided(r) {
			a.queue.Add(requestKey + r.Name)
		}
	}
}

func (a *Approver) touchAll() {
	a.touchRequests()
	for _, key := range a.tokens.Keys() {
		a.queue.Add(tokenKey + key.Name)
	}
}

// work decides about one request, or deletes one token if it has expired.
func (a *Approver) work(ctx context.Context, key string) (time.Duration, error) {
	if a.requests.Err() != nil || a.tokens.Err() != nil || a.targets.Err() != nil {
		return 0, nil // a cache is stale; touchAll queues all keys when it is fresh again
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.CallTimeout)
	defer cancel()
	if name, ok := strings.CutPrefix(key, tokenKey); ok {
		return a.expire(ctx, name)
	}
	name := strings.TrimPrefix(key, requestKey)
	obj, ok := a.requests.Get(types.NamespacedName{Name: name})
	if !ok {
		return 0, nil
	}
	r, err := decode(obj)
	if err != nil {
		return 0, err
	}
	o := observation{request: r, namespace: a.opts.Namespace, present: a.present, now: time.Now(), longest: a.opts.Longest}
	var account *unstructured.Unstructured
	if name, ok := accountOf(r.Spec.Username, a.opts.Namespace); ok {
		if account, ok = a.tokens.Get(types.NamespacedName{Namespace: a.opts.Namespace, Name: name}); ok {
			o.token = tokenIn(account)
		}
	}
	return 0, a.apply(ctx, obj, account, r, judge(o))
}

// present reports whether a SyncTarget exists and is not being deleted.
func (a *Approver) present(target string) bool {
	obj, ok := a.targets.Get(types.NamespacedName{Name: target})
	return ok && obj.GetDeletionTimestamp() == nil
}

// uidOf returns the UID of a SyncTarget; empty if it does not exist.
func (a *Approver) uidOf(target string) types.UID {
	if obj, ok := a.targets.Get(types.NamespacedName{Name: target}); ok {
		return obj.GetUID()
	}
	return ""
}

// tokenIn returns the token of a ServiceAccount. A malformed time counts as long past.
func tokenIn(account *unstructured.Unstructured) *token {
	annotations := account.GetAnnotations()
	expires, _ := time.Parse(time.RFC3339, annotations[expiresAnnotation])
	return &token{
		uid: account.GetUID(), target: annotations[targetAnnotation], expires: expires, usedBy: types.UID(annotations[usedAnnotation]),
	}
}
