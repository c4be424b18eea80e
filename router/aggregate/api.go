// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// Options adjust an API. The zero value works.
type Options struct {
	// Timeout limits one read request to a region. For a watch, it limits the time until the region accepts the
	// watch. A write is limited by its context only. Zero: 30 seconds.
	Timeout time.Duration

	// Answer is the time in which a region must begin its answer to a list or a get, at most Timeout. A frozen
	// region delays a list by this time. The default allows for a round trip around the globe and a busy API
	// server, since one request asks for at most a page. A watch that gets no answer doubles the time for its next
	// attempt. Zero: 5 seconds.
	Answer time.Duration

	// Map maps a common type to the type of each region. Nil: the same type in all regions.
	Map Mapping

	// Qualify makes the names of objects NAME@REGION in all answers, such as orders@eu-west-1.loodse. Names are
	// then unique even if regions have objects of the same name, which an informer would otherwise confuse.
	// Requests may use such names without Qualify too.
	Qualify bool

	// Withhold makes watches send no events when a region leaves. By default they report the objects of the region as
	// deleted.
	Withhold bool

	// Keys authenticates resourceVersions and continue tokens. Nil: a random key, so that a resourceVersion of an
	// earlier process gets 410, and a continue token of an earlier process gets 400.
	Keys *Keyring

	// Parallel bounds the concurrent requests of one list. Zero: 64.
	Parallel int

	// Bookmark is the minimum time between the bookmarks of a watch. Zero: 1 minute.
	Bookmark time.Duration

	// Patience is how long a watch waits for its consumer to receive an event. Then the watch ends. Zero: 1 minute.
	Patience time.Duration

	// Retry is the first delay before a watch retries a region that failed. The delay doubles with each failure, up to
	// 50 times Retry. It ends early as soon as Member.Health reports that the region has recovered. Zero: 200
	// milliseconds.
	Retry time.Duration

	// MaxAnswer limits an answer of a region, and an event of a watch, in bytes after decompression. A page of a
	// list above the limit is read again with fewer objects. A single object above the limit, or an endless answer,
	// is TooLarge. The limit applies to clients of Regions and of region.APIFor. Zero: 16 MiB.
	MaxAnswer int64

	// Budget limits the bytes of all answers held at one time, over the APIs that share it. If it is used up, a
	// request waits for at most Answer, then fails with Busy. Lists of the Dynamic client and of ListAll count page
	// by page while they are read; the complete list is the caller's and does not count. Nil: 256 MiB for this API.
	Budget *Budget

	// WarningHandler receives a warning for each region that did not contribute to an answer, like the handler of a
	// client of one API server. It must return quickly. Nil: only the context's Report and the lists name such
	// regions.
	WarningHandler rest.WarningHandlerWithContext

	// Sharing lets the watches of one Identity share one watch of each region. Nil: each watch watches the regions itself.
	Sharing *Sharing
	// Identity names the caller as whom the Set sends its requests, such as router.Identity.Fingerprint. It must differ
	// for callers whom a region may give different rights. Empty: watches are not shared.
	Identity string

	Observer *Observer // may be nil
}

// Observer receives events of the API. A nil Observer and nil fields are valid. Hooks are called synchronously
// without a lock held, possibly from many goroutines, and must return quickly.
type Observer struct {
	// Listed is called for the first page of each list, with the outcome of each region.
	Listed func(ctx context.Context, outcomes []Outcome)
	// Followed is called for each step of a watch in one region.
	Followed func(ctx context.Context, e FollowEvent)
}

// FollowEvent is a step of a watch in one region.
type FollowEvent struct {
	Region region.Key
	Step   Step
	State  State // OK, or the reason why the step failed
	Err    error // for operators: it may name peers
}

// Step is the kind of a FollowEvent.
type Step string

const (
	// StepWatch follows the region's changes.
	StepWatch Step = "watch"
	// StepVerify compares the region's history with the delivered events, after an interruption.
	StepVerify Step = "verify"
	// StepList lists the region and delivers the difference from the objects that the consumer has, at the beginning
	// and as a repair.
	StepList Step = "list"
	// StepShare follows the objects and events that another watch of the same identity receives.
	StepShare Step = "share"
	// StepLeave removes a region that has left the Set.
	StepLeave Step = "leave"
)

// API presents many regions as one API server. It starts no goroutines by itself and is safe for concurrent use.
type API struct {
	set  Set
	opts Options

	account *account
}

// New returns an API for the regions in set. It does no I/O.
func New(set Set, opts Options) (*API, error) {
	if argument.Missing(set) {
		return nil, errors.New("aggregate: the set is nil; use Regions or Fixed")
	}
	if opts.Map == nil {
		opts.Map = func(common schema.GroupVersionResource, _ region.Key) (schema.GroupVersionResource, bool) {
			return common, true
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Timeout", &opts.Timeout, 30 * time.Second}, {"Answer", &opts.Answer, 5 * time.Second}, {"Bookmark", &opts.Bookmark, time.Minute},
		{"Patience", &opts.Patience, time.Minute}, {"Retry", &opts.Retry, 200 * time.Millisecond},
	} {
		if *d.value < 0 {
			return nil, fmt.Errorf("aggregate: Options.%s is %s; want a positive duration, or zero for %s", d.name, *d.value, d.zero)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	opts.Answer = min(opts.Answer, opts.Timeout)
	if opts.Parallel <= 0 {
		opts.Parallel = 64
	}
	account, err := accountOf(&opts)
	if err != nil {
		return nil, err
	}
	if opts.Keys == nil {
		opts.Keys = RandomKeyring()
	}
	return &API{set: set, opts: opts, account: account}, nil
}

// accountOf returns the API's account in opts.Budget or, without one, in a Budget of its own. It sets the default of
// opts.MaxAnswer, and lowers MaxAnswer to the bytes of the account.
func accountOf(opts *Options) (*account, error) {
	if opts.MaxAnswer < 0 {
		return nil, fmt.Errorf("aggregate: Options.MaxAnswer is %d; want a positive number of bytes, or zero for %d", opts.MaxAnswer, defaultAnswer)
	}
	if opts.MaxAnswer == 0 {
		opts.MaxAnswer = defaultAnswer
	}
	budget, own := opts.Budget, int64(1)
	if budget == nil {
		var err error
		if budget, err = NewBudget(0); err != nil {
			return nil, err
		}
	} else {
		own = shares
	}
	a := budget.account(budget.bytes / own)
	opts.MaxAnswer = min(opts.MaxAnswer, a.bytes)
	return a, nil
}

// Dynamic returns a client for resources that span all regions: see the package's documentation.
func (a *API) Dynamic() dynamic.Interface { return client{a} }

// query selects the objects of a list or a watch.
type query struct {
	namespace string
	types     []schema.GroupVersionResource
	labels    string
	fields    string
	only      *region.Key // nil: all regions
	form      Form
}

// newQuery reads opts. If the field selector in opts contains a qualified name, the query covers only the region in
// that name. The field may be any: kubectl describe selects events by the name of their object.
func newQuery(namespace string, types []schema.GroupVersionResource, opts metav1.ListOptions) query {
	q := query{namespace: namespace, types: types, labels: opts.LabelSelector, fields: opts.FieldSelector}
	terms := strings.Split(q.fields, ",")
	for i, term := range terms {
		field, value, ok := strings.Cut(term, "=")
		if !ok || strings.HasSuffix(field, "!") {
			continue
		}
		if name, k, ok := splitName(strings.TrimPrefix(value, "=")); ok && (q.only == nil || *q.only == k) {
			q.only, terms[i] = &k, field+"="+name
		}
	}
	q.fields = strings.Join(terms, ",")
	return q
}

// hash returns a hash of the query. It identifies the query in continue tokens.
func (q query) hash() (h [8]byte) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %v %d", q.namespace, q.types, q.labels, q.fields, q.only, q.form))
	copy(h[:], sum[:])
	return h
}

// op returns the operation and its resources, as errors name them.
func (q query) op(verb string) string {
	names := make([]string, len(q.types))
	for i, t := range q.types {
		names[i] = t.GroupResource().String()
	}
	return verb + " " + strings.Join(names, ", ")
}

// source is one type in one region.
type source struct {
	id        sourceID
	common    schema.GroupVersionResource
	regional  schema.GroupVersionResource
	region    region.Key
	client    dynamic.ResourceInterface
	raw       rest.Interface // may be nil
	namespace string
	health    Health // may be nil
	page      int64  // how many objects fit into an answer, if a larger one exceeded the limit
	size      int64  // the bytes of an object in the last answer; 0: not known
	many      int64  // how many objects of this size fit into a large page
}

// largest returns the number of bytes of a large page.
func (a *API) largest() int64 { return min(largePage, a.opts.MaxAnswer/4) }

// learn takes the size of objects from an answer. A large page has at most eight times as many objects, since later
// objects may be larger.
func (s *source) learn(objects, bytes int, largest int64) {
	if objects > 0 {
		s.size = int64(bytes/objects) + 1
		s.many = min(largest/s.size, 8*int64(objects))
	}
}

// limit returns how many objects to request in one page for a caller that takes at most room objects.
func (s *source) limit(room int64) int64 {
	if s.page > 0 {
		return min(room, s.page)
	}
	return min(room, readPage)
}

// unreachable returns an error if the region of s is known to be unreachable, and nil otherwise.
func (s *source) unreachable() error {
	if s.health == nil {
		return nil
	}
	h := s.health.Health()
	if !h.Unreachable() {
		return nil
	}
	return fmt.Errorf("%w: %w since %s: %w", errNotAsked, region.ErrUnavailable, h.Since.Format(time.RFC3339), h.Err)
}

// recovered returns a channel that is closed when the region of s is reachable again. It returns nil if the region has
// no Health.
func (s *source) recovered() <-chan struct{} {
	if s.health == nil {
		return nil
	}
	return s.health.Recovered()
}

// sources returns the sources of q, ordered by type and region. If several members have the same cluster and regional
// type, only the first of them is a source.
func (a *API) sources(q query, members []Member) []source {
	type served struct {
		cluster string
		gvr     schema.GroupVersionResource
	}
	taken := map[served]bool{}
	var all []source
	for _, common := range q.types {
		for _, m := range members {
			regional, ok := a.opts.Map(common, m.Region)
			if !ok || q.only != nil && *q.only != m.Region {
				continue
			}
			if m.Cluster != "" {
				key := served{m.Cluster, regional}
				if taken[key] {
					continue
				}
				taken[key] = true
			}
			s := source{common: common, regional: regional, region: m.Region, client: resourceOf(m.Client, regional, q.namespace), raw: m.REST, namespace: q.namespace, health: m.Health}
			sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", regional, m.Region, m.Cluster))
			copy(s.id[:], sum[:])
			all = append(all, s)
		}
	}
	return all
}

func resourceOf(c dynamic.Interface, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.Resource(gvr)
	}
	return c.Resource(gvr).Namespace(namespace)
}

// report adds outcomes to the context's Report and calls the warning handler.
func (a *API) report(ctx context.Context, outcomes []Outcome) {
	if r, ok := ctx.Value(reportKey{}).(*Report); ok {
		r.add(outcomes)
	}
	if h := a.opts.WarningHandler; h != nil {
		for _, text := range shorten(failuresOf(outcomes)) {
			h.HandleWarningHeaderWithContext(ctx, 299, "-", text)
		}
	}
}

func (a *API) listed(ctx context.Context, outcomes []Outcome) {
	a.report(ctx, outcomes)
	if o := a.opts.Observer; o != nil && o.Listed != nil {
		o.Listed(ctx, slices.Clone(outcomes))
	}
}

func (a *API) followed(ctx context.Context, e FollowEvent) {
	if o := a.opts.Observer; o != nil && o.Followed != nil {
		o.Followed(ctx, e)
	}
}
