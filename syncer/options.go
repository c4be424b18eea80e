// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Options adjust a Syncer. Only Target is required.
type Options struct {
	// Target is the name of the SyncTarget: the value of the label of what is synced. It must be a valid label value.
	Target string

	// Label is the key of that label; zero: v1alpha1.ClusterLabel. Objects that have the label
	// v1alpha1.StateLabelPrefix + Target with the value v1alpha1.StateSync are synced too.
	Label string

	// Types says which types are synced, of those that both sides serve; nil: DefaultTypes, and those that Permit names. New
	// returns an error if it selects a type that needs a Power which Permit lacks.
	Types TypeFilter

	// Report says of which types that Types leaves out objects are reported that are labelled for the target: see
	// TypeStatus.Problems. It needs Conditions or a Heartbeat, and list of those types upstream; those that may not be listed
	// are skipped. nil: of all if Types is nil, else of none, since a program that names its types need not have rights on
	// others. Objects of types that Types selects and that the two sides do not serve alike are reported in any case.
	Report TypeFilter

	// Permit names the powers over the downstream that authors of upstream objects may have, and the other way round: see Power.
	// The program decides it, never an object. nil: none.
	Permit []Power

	// Refuse keeps types and objects out that Types and Permit let in, such as custom types that grant rights. It returns
	// why, in words that go into Status and conditions, and "" to let it through. obj is nil when the type as a whole
	// is asked about, and otherwise the object where it was born, which Refuse must not modify. It must be safe for
	// concurrent use and always give the same answer for the same arguments. A copy of a refused object stays as it is, see
	// ReasonNotPermitted. May be nil.
	Refuse func(gr schema.GroupResource, obj *unstructured.Unstructured) (why string)

	// Upsync says of which of the Types objects that are born downstream are brought up, if they have the label
	// v1alpha1.StateLabelPrefix + Target with the value v1alpha1.StateUpsync there: with their status, under the name of
	// the namespace that holds them. They belong to the downstream: who changes them upstream is overruled, and they go when
	// they go downstream or lose the label there. nil: none.
	Upsync TypeFilter

	// Namespaces says where upstream namespaces are downstream; nil: under the same name.
	Namespaces NamespaceMap

	// NamespaceSync says what of a namespace upstream passes to the one downstream beside its objects: its labels and
	// annotations, and its end. The zero value: nothing.
	NamespaceSync NamespaceOptions

	// Transform changes objects on their way down, in this order.
	Transform []Transformer

	// Rules say how fields are owned, beside the built-in rules for core types. Later ones win.
	Rules []Rule

	// Adopt says what happens to an object downstream that is in the way and not ours; zero: AdoptNever.
	Adopt AdoptPolicy

	// OnDownstreamDelete says what happens if somebody deletes a copy downstream; zero: it is made again. What was born
	// downstream is deleted upstream in any case.
	OnDownstreamDelete DeletePolicy

	// DeleteCap stops deletions that look like an accident; zero: more than 10 objects and 30 % of a type
	// within a minute.
	DeleteCap DeleteCap

	// Fights says when somebody who changes objects downstream again and again is not overruled any more; zero: when the
	// same field was changed back 5 times within 5 minutes.
	Fights FightCap

	// Upstream identifies the upstream among all that sync to the same downstream; zero: the UID of its namespace
	// kube-system. What was synced under another identity is foreign. An upstream that moves to another cluster under its
	// identity has objects with other UIDs: they take the copies over that are of their names.
	Upstream string

	// Conditions says on each upstream object whether it is synced, and if not, why: in the condition
	// v1alpha1.SyncedCondition, or in an annotation where the type has no place for it. It costs a write when an object is
	// first synced, and one whenever that changes.
	Conditions bool

	// Unscheduled is how often it is counted downstream how many pods of each workload find no node, which is then said in
	// the annotation v1alpha1.UnscheduledAnnotationPrefix of the workload upstream. A workload is an object of any of the
	// Types that is the controller of pods, or of their ReplicaSet. It costs one list of all pending pods each time, up to a
	// fifth later at random, a read of each ReplicaSet that has such pods, and a write when their number changes or the
	// scheduler says something else than other numbers of it. It needs UnscheduledRights downstream; without them the Observer
	// is told, and what was last known stays. Zero: never, and what was said before is removed.
	Unscheduled time.Duration

	// Workers is how many objects are worked on at once; zero: 16.
	Workers int

	// Discovery is how often the types of both sides are compared; zero: 30 s, up to a fifth longer at random.
	Discovery time.Duration

	// Heartbeat is how often the status of the SyncTarget of that name is written upstream, if there is one; zero: never.
	Heartbeat time.Duration

	// Lease is how long after the last Heartbeat that the upstream accepted, and that found the downstream reachable, the
	// Syncer writes. After that it is cut off for all that it knows, and what it runs may be placed elsewhere: it writes
	// and deletes nothing on either side, says so in Status.Stale, and leaves all that runs as it is. When a heartbeat is
	// accepted again, it removes what moved away before it creates or changes anything, and the SyncTarget has Ready False
	// with the reason Stale until then. Zero: three times the Heartbeat, or no lease without one; negative: no lease. It
	// should be shorter than the time after which a cluster's workloads are placed elsewhere.
	Lease time.Duration

	// Capacity is how often the nodes of the downstream are read, page by page, for what the Heartbeat says of its capacity;
	// zero: a minute, up to a fifth longer at random; negative: never, what was said of it before is removed, and what others
	// say is left alone. It stays the last known while nodes cannot be read, and is empty if there are none.
	Capacity time.Duration

	// Observer is told what happens. May be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// TypeFilter says whether a type is synced, if both sides serve it. It must be safe for concurrent use.
type TypeFilter func(schema.GroupResource) bool

// DefaultTypes selects, of Kubernetes' own types, workloads, their configuration, networking within a namespace, claims of
// storage and devices, autoscaling and policy that only restricts; and all custom types but those of package v1alpha1. It
// leaves out Pods and Events, which Options.Types may name, and all that needs a Power. A custom type is one of a group that
// kube-apiserver does not serve itself, such as gateway.networking.k8s.io.
func DefaultTypes(gr schema.GroupResource) bool {
	switch classify(gr).how {
	case byDefault:
		return true
	case custom:
		return gr.Group != v1alpha1.GroupVersion.Group
	}
	return false
}

// defaultTypes are DefaultTypes and those that need a Power: without it they are watched, and their objects reported. A
// Namespace that has the label is nothing to report: tools label it for its objects. Nor are Endpoints and EndpointSlices:
// controllers copy the labels of their Service.
func (o Options) defaultTypes(gr schema.GroupResource) bool {
	c := classify(gr)
	derived := c.power == PermitNamespaces || c.power == PermitEndpoints
	return DefaultTypes(gr) || c.how == byPermit && (!derived || slices.Contains(o.Permit, c.power))
}

// refusesType says why a type is not synced although both sides serve it; "" if it is.
func (o Options) refusesType(gr schema.GroupResource) string {
	if why := permits(o.Permit, gr); why != "" {
		return why
	}
	if o.Refuse == nil {
		return ""
	}
	return o.Refuse(gr, nil)
}

// checkPermit returns an error for each wrong entry of Permit, and for types that need more than it has.
func (o Options) checkPermit() error {
	var wrong []error
	for i, p := range o.Permit {
		if _, err := ParsePower(string(p)); err != nil {
			wrong = append(wrong, fmt.Errorf("options: Permit[%d]: %w", i, err))
		}
	}
	if o.Types == nil {
		return errors.Join(wrong...)
	}
	named := slices.DeleteFunc(powerfulTypes(), func(gr schema.GroupResource) bool { return !o.Types(gr) })
	if err := CheckTypes(o.Permit, named...); err != nil {
		wrong = append(wrong, fmt.Errorf("options: Types selects what Permit lacks: leave it out, or add the permit: %w", err))
	}
	return errors.Join(wrong...)
}

// Transformer changes an object on its way down. It may modify obj, except for its type, name and namespace, must not
// depend on anything else, so that the same object gives the same result, and may return Skip.
type Transformer func(obj *unstructured.Unstructured) error

// Skip is what a Transformer returns for an object that is not to be written downstream now. What is there stays; its
// status is not reported.
var Skip = errors.New("skipped by a transformer") //nolint:errname,revive,staticcheck // named like fs.SkipDir

// AdoptPolicy says what happens to an object downstream that has the place of one of ours and was not made by this
// syncer.
type AdoptPolicy int

const (
	// AdoptNever leaves it alone and reports ReasonForeign.
	AdoptNever AdoptPolicy = iota
	// AdoptEqual takes it over if that changes nothing but labels and annotations, and reports ReasonForeign otherwise.
	AdoptEqual
	// AdoptAlways takes it over. Fields that the upstream object does not have stay.
	AdoptAlways
)

// DeleteCap limits deletions downstream, and those upstream that follow one downstream. It is exceeded when, of one type,
// within the time, more than Objects and more
// than Share of them would go. Then nothing of that type is deleted until Syncer.Release, or until nothing is left that
// waits to be deleted. The count begins anew with the process.
type DeleteCap struct {
	// Objects is how many may go in any case; zero: 10; negative: there is no limit at all.
	Objects int
	// Share is which part of a type may go, above 0 and up to 1; zero: 0.3.
	Share float64
	// Within is the time over which deletions are counted; zero: a minute.
	Within time.Duration
}

func (o Options) complete() (Options, error) {
	var wrong []error
	if problems := validation.IsValidLabelValue(o.Target); o.Target == "" || len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("options: Target %q: want the name of a SyncTarget that is a valid label value: %s", o.Target, strings.Join(problems, "; ")))
	}
	if o.Label == "" {
		o.Label = v1alpha1.ClusterLabel
	}
	if problems := validation.IsQualifiedName(o.Label); len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("options: Label %q: want the key of a label: %s", o.Label, strings.Join(problems, "; ")))
	}
	if o.Adopt < AdoptNever || o.Adopt > AdoptAlways {
		wrong = append(wrong, fmt.Errorf("options: Adopt %d: want AdoptNever, AdoptEqual or AdoptAlways", o.Adopt))
	}
	if o.OnDownstreamDelete < RecreateCopy || o.OnDownstreamDelete > DeleteUpstream {
		wrong = append(wrong, fmt.Errorf("options: OnDownstreamDelete %d: want RecreateCopy or DeleteUpstream", o.OnDownstreamDelete))
	}
	if o.Report == nil {
		all := o.Types == nil
		o.Report = func(schema.GroupResource) bool { return all }
	}
	if err := o.NamespaceSync.check(); err != nil {
		wrong = append(wrong, err)
	}
	if o.NamespaceSync.enabled() && slices.Contains(o.Permit, PermitNamespaces) {
		wrong = append(wrong, errors.New("options: NamespaceSync and Permit of Namespaces: with the permit namespaces are objects like others: choose one"))
	}
	if o.Types == nil {
		o.Types = o.defaultTypes
	}
	if o.Namespaces == nil {
		o.Namespaces = SameNamespaces()
	}
	if o.DeleteCap.Objects == 0 {
		o.DeleteCap.Objects = 10
	}
	if o.DeleteCap.Share == 0 {
		o.DeleteCap.Share = 0.3
	}
	if !(o.DeleteCap.Share > 0 && o.DeleteCap.Share <= 1) {
		wrong = append(wrong, fmt.Errorf("options: DeleteCap.Share %v: want a part of the whole, above 0 and up to 1", o.DeleteCap.Share))
	}
	if o.DeleteCap.Within == 0 {
		o.DeleteCap.Within = time.Minute
	}
	if o.Fights.Times == 0 {
		o.Fights.Times = 5
	}
	if o.Fights.Within <= 0 {
		o.Fights.Within = 5 * time.Minute
	}
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.Discovery <= 0 {
		o.Discovery = 30 * time.Second
	}
	if o.Lease == 0 || o.Heartbeat <= 0 {
		o.Lease = 3 * max(0, o.Heartbeat)
	}
	if o.Capacity == 0 {
		o.Capacity = time.Minute
	}
	return o, errors.Join(wrong...)
}
