// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// fieldManager owns the fields that the log writes.
const fieldManager = "atoll-log"

// pause is the delay before a request is repeated.
const pause = 50 * time.Millisecond

// writeContext returns the context of a writing call. The call runs to its end, within Options.Timeout, even if the
// caller's context ends: stopping after some of its writes would be worse than being late.
func (l *Log) writeContext(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l == nil || l.client == nil {
		return nil, nil, errNotMade
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.opts.Timeout)
	// This disables the retries of client-go, which the log could not observe.
	return region.WithAttempt(ctx, new(region.Attempt)), cancel, nil
}

// awaitRetry waits for the duration pause. It returns false if ctx ends first.
func awaitRetry(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refused reports whether err is an answer of the API server which means that the write has no effect, now or
// later.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// absent reports whether err means that the object does not exist. A 404 because the type or the API server is
// missing does not count.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// get reads a record from a quorum. It returns nil if the record does not exist.
func (l *Log) get(ctx context.Context, name string) (*v1alpha1.Operation, error) {
	u, err := l.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("central log: read operation %s: %w", name, explain(err))
	}
	return decode(u)
}

func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err) && !absent(err):
		return fmt.Errorf("the central plane does not serve operations.fanout.atoll.dev, install its CRD there: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the central plane must grant create, delete, get, list and patch on operations.fanout.atoll.dev: %w", err)
	}
	return err
}

// find calls get until it succeeds, fails permanently, or ctx ends.
func (l *Log) find(ctx context.Context, name string) (*v1alpha1.Operation, error) {
	for {
		o, err := l.get(ctx, name)
		if err == nil {
			return o, nil
		}
		if _, damaged := errors.AsType[*wal.CorruptError](err); damaged || refused(err) || !awaitRetry(ctx) {
			return nil, err
		}
	}
}

// write is one change of a record, sent in one or more requests.
type write struct {
	op, id string
	unsure bool // the outcome of a request is unknown: it may have been applied, or may be applied later
}

// doubt returns err. If the change may have been applied nevertheless, it wraps err in an *InDoubtError.
func (w write) doubt(err error) error {
	if w.unsure {
		return &InDoubtError{Op: w.op, ID: w.id, Err: err}
	}
	return err
}

func (w write) failed(err error) error {
	return fmt.Errorf("central log: %s %q: %w", w.op, w.id, err)
}

// create stores o, or returns the other object that has o's name. If an answer is lost, it reads the object: a
// create of one name is applied at most once.
func (l *Log) create(ctx context.Context, op string, o *v1alpha1.Operation) (stored, other *v1alpha1.Operation, err error) {
	o.Spec.Write = rand.Text()
	u, err := encode(o)
	if err != nil {
		return nil, nil, err
	}
	w := write{op: op, id: o.Name}
	for {
		got, err := l.client.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
		if err == nil {
			stored, err = decode(got)
			return stored, nil, err
		}
		switch {
		case apierrors.IsAlreadyExists(err):
		case !refused(err):
			w.unsure = true
		case !w.unsure:
			return nil, nil, w.failed(explain(err))
		}
		was := err
		there, err := l.find(ctx, o.Name)
		switch {
		case err != nil && w.unsure:
			return nil, nil, w.doubt(was)
		case err != nil:
			return nil, nil, err
		case there != nil:
			return w.occupied(o, there)
		case awaitRetry(ctx):
		case w.unsure:
			return nil, nil, w.doubt(was)
		default:
			return nil, nil, w.failed(was)
		}
	}
}

// occupied returns the result of a create of o. The parameter there is the record that a read has found under o's
// name.
func (w write) occupied(o, there *v1alpha1.Operation) (stored, other *v1alpha1.Operation, err error) {
	mine, found := o.Spec, there.Spec
	switch {
	case found.Write == mine.Write:
		return there, nil, nil
	case w.unsure && found.Operation == mine.Operation && found.Began == mine.Began && found.Holder != mine.Holder:
		// The record may be o itself, if o was created and another program then took it over.
		return nil, there, w.doubt(wal.ErrStale)
	default:
		return nil, there, nil
	}
}

// change is a write of some fields, valid only for one version of a record.
type change struct {
	write
	uid    types.UID
	rv     string
	unique string // in spec.write; the stored record has this value if this change was the last
	body   []byte
}

// patch atomically changes fields of the record id at version v, and returns the stored record. If another change
// came first, it returns the stored record with wal.ErrStale. If the record does not exist, it returns nil with
// wal.ErrNotFound.
func (l *Log) patch(ctx context.Context, op, id, v string, state v1alpha1.OperationState, fields map[string]any) (*v1alpha1.Operation, error) {
	uid, rv, err := parseVersion(v)
	if err != nil {
		return l.stale(ctx, id)
	}
	c := change{write: write{op: op, id: id}, uid: uid, rv: rv, unique: rand.Text()}
	spec := maps.Clone(fields)
	spec["write"] = c.unique
	metadata := map[string]any{"resourceVersion": rv}
	if state != "" {
		spec["state"] = state
		metadata["labels"] = map[string]any{stateLabel: state}
	}
	if c.body, err = json.Marshal(map[string]any{"metadata": metadata, "spec": spec}); err != nil {
		return nil, c.failed(err)
	}
	return l.apply(ctx, c)
}

// apply sends c until the outcome is known, or the time is up. After any failure it reads the record: if the record
// has the unique text of c, an earlier attempt was applied.
func (l *Log) apply(ctx context.Context, c change) (*v1alpha1.Operation, error) {
	for {
		u, err := l.client.Patch(ctx, c.id, types.MergePatchType, c.body, metav1.PatchOptions{FieldManager: fieldManager})
		if err == nil {
			return decode(u)
		}
		switch {
		case apierrors.IsConflict(err), absent(err):
		case apierrors.IsInvalid(err) && !c.unsure:
			return l.invalid(ctx, c, err)
		case refused(err) && !c.unsure:
			return nil, c.failed(explain(err))
		default:
			c.unsure = true
		}
		was := err
		there, err := l.find(ctx, c.id)
		switch {
		case err != nil:
			return nil, c.doubt(fmt.Errorf("%w: %w", was, err))
		case there == nil:
			return nil, c.doubt(wal.ErrNotFound)
		case there.UID == c.uid && there.Spec.Write == c.unique:
			return there, nil
		case there.UID != c.uid || there.ResourceVersion != c.rv:
			return there, c.doubt(wal.ErrStale)
		case !awaitRetry(ctx):
			return there, c.doubt(was)
		}
	}
}

// invalid returns the result of a change that a validation rule of the schema rejected. If the record has ended,
// the error is ErrStale, whatever the version of the change.
func (l *Log) invalid(ctx context.Context, c change, err error) (*v1alpha1.Operation, error) {
	if there, _ := l.find(ctx, c.id); there != nil && there.Spec.State == v1alpha1.OperationEnded {
		return there, wal.ErrStale
	}
	return nil, c.failed(err)
}

// stale returns the result of a change whose version is invalid.
func (l *Log) stale(ctx context.Context, id string) (*v1alpha1.Operation, error) {
	there, err := l.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, wal.ErrNotFound
	default:
		return there, wal.ErrStale
	}
}

// remove deletes the record o if it has not changed since it was read.
func (l *Log) remove(ctx context.Context, o *v1alpha1.Operation) error {
	return l.client.Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
	})
}
