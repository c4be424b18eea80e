// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Options configure a Syncer. Only Target is required.
type Options struct {
	// Target is the name of the SyncTarget, and the value of the label on the objects to sync. It must be a valid label
	// value.
	Target string

	// Label is the key of the label on the objects to sync; zero: v1alpha1.ClusterLabel. Objects that have the label
	// v1alpha1.StateLabelPrefix + Target with the value v1alpha1.StateSync are synced too.
	Label string

	// Types selects the types to sync, of those that both sides serve; nil: the types of DefaultTypes, and those whose
	// Power Permit has. New returns an error if Types selects a type that this release knows and that needs a Power
	// which Permit lacks.
	Types TypeFilter

	// Report selects further types, of those that Types leaves out. The syncer reports their objects that are labelled
	// for the target: see TypeStatus.Problems. It needs Conditions or a Heartbeat, and the right to list those types
	// upstream; it skips a type that it may not list. nil: all types if Types is nil, and no types otherwise, since a
	// program that names its types need not have rights on others. If Types selects a type and the two sides do not
	// serve it alike, its objects are reported in any case.
	Report TypeFilter

	// Permit lists the powers over the downstream that authors of upstream objects may have, and with Upsync the powers
	// over the upstream that authors of downstream objects may have: see Power. The program grants them; no object can.
	// nil: none.
	Permit []Power

	// Refuse rejects types and objects that Types and Permit accept, such as custom types that grant rights. It returns
	// the reason, which appears in Status and conditions, or "" to accept. obj is nil if the type as a whole is
	// checked, and otherwise the object on the side where it was born, which Refuse must not modify. It must be safe
	// for concurrent use and always return the same result for the same arguments. The downstream object of a refused
	// object stays as it is, see ReasonNotPermitted. May be nil.
	Refuse func(gr schema.GroupResource, obj *unstructured.Unstructured) (why string)

	// Upsync selects types, among those that Types selects. If an object of such a type is born downstream and has the
	// label v1alpha1.StateLabelPrefix + Target with the value v1alpha1.StateUpsync there, the syncer brings it up: it
	// creates an upstream object for it, with its status, in the upstream namespace that Namespaces returns. The
	// upstream object belongs to the downstream: the syncer overwrites changes that other clients make upstream, and
	// deletes the upstream object when the downstream object is deleted or loses the label. nil: none.
	Upsync TypeFilter

	// Namespaces maps upstream namespaces to downstream ones; nil: to those of the same name.
	Namespaces NamespaceMap

	// NamespaceSync configures the sync of namespaces themselves: their labels, annotations and deletion. The zero
	// value: namespaces are only created when objects need them.
	NamespaceSync NamespaceOptions

	// Transform changes objects on their way down, in the order of this list.
	Transform []Transformer

	// Rules define who owns which fields, in addition to the built-in rules for core types. Of several rules for one
	// path, the last counts.
	Rules []Rule

	// WorkloadTypes are declarations of custom types, which say whose replicas autoscalers set. While a synced object of
	// a declared type with a scaleTarget targets an object, or a HorizontalPodAutoscaler does, the declared replicas of
	// this object belong to the autoscaler downstream. A declaration selects no type, permits nothing, and lets no field
	// go up. nil: only the types of Kubernetes.
	WorkloadTypes []splitterv1alpha1.WorkloadTypeSpec

	// Adopt is the policy for an object downstream that this syncer did not create and that has the name of an
	// object to be created; zero: AdoptNever.
	Adopt AdoptPolicy

	// OnDownstreamDelete is the policy for a downstream object that another client deletes; zero: RecreateCopy. If
	// the object was born downstream, its upstream object is deleted in any case.
	OnDownstreamDelete DeletePolicy

	// DeleteCap stops deletions that look like an accident; zero: more than 10 objects and 30 % of a type within a
	// minute.
	DeleteCap DeleteCap

	// Fights limits how often changes of another client downstream are overwritten; zero: the same field 5 times within
	// 5 minutes.
	Fights FightCap

	// Upstream identifies the upstream among all upstreams that sync to the same downstream; zero: the UID of its
	// namespace kube-system. Downstream objects that were made under another identity are foreign. If an upstream
	// moves to another cluster and keeps its identity, its objects have other UIDs: each takes over the downstream
	// object of its name.
	Upstream string

	// Conditions reports on each upstream object whether it is synced, and if not, why: in the condition
	// v1alpha1.SyncedCondition, or in an annotation if the type has no place for it. It costs a write when an object is
	// first synced, and one for each change of the condition.
	Conditions bool

	// Unscheduled is how often the pods without a node are counted downstream, for each workload. The count is written
	// to the annotation v1alpha1.UnscheduledAnnotationPrefix of the upstream workload. An object of any of the Types
	// counts as a workload if its downstream object is the controller of pods, or of their ReplicaSet. Zero: never,
	// and earlier counts are removed.
	//
	// A count comes up to a fifth later at random. It costs a list of all pending pods, a read of each ReplicaSet that
	// has such pods and whose owner is not known yet, and a write if the number changes or the scheduler's message
	// differs in more than numbers. It needs UnscheduledRights downstream; without them the last count stays and
	// Observer.Problem is called.
	Unscheduled time.Duration

	// Workers is how many objects are reconciled at once; zero: 16.
	Workers int

	// Discovery is how often the types of both sides are compared; zero: 30 s, up to a fifth longer at random.
	Discovery time.Duration

	// Heartbeat is how often the status of the SyncTarget is written upstream, if the SyncTarget exists; zero: never.
	Heartbeat time.Duration

	// Lease is how long the Syncer may write after the last Heartbeat that the upstream accepted while the downstream
	// was reachable. After that it must assume that it is cut off, and that its workloads are placed elsewhere: on
	// either side it writes and deletes nothing but the status of the SyncTarget, sets Status.Stale, and stops no
	// workload. When a heartbeat is accepted again, it first deletes the downstream objects that moved away, before it
	// creates or changes any. While it deletes them, the SyncTarget has Ready False with the reason Stale.
	//
	// Zero: three times the Heartbeat, or no lease without a Heartbeat; negative: no lease. It should be shorter than
	// the time after which a cluster's workloads are placed elsewhere.
	Lease time.Duration

	// Capacity is how often the nodes of the downstream are read, page by page, for the capacity in the status of
	// the SyncTarget; zero: a minute, up to a fifth longer at random. Negative: never; a capacity that the syncer
	// wrote is removed, and one of another writer stays. While nodes cannot be read, the last known capacity
	// stays. If there are no nodes, the capacity is empty.
	Capacity time.Duration

	// Observer receives events. May be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// TypeFilter reports whether it selects a type. It must be safe for concurrent use.
type TypeFilter func(schema.GroupResource) bool

// DefaultTypes reports whether a type is synced by default. It selects the types of Kubernetes for workloads, their
// configuration, networking within a namespace, claims of storage and devices, autoscaling, and policy that only
// restricts. It also selects all custom types except those of package v1alpha1. It leaves out Pods and Events, which
// Options.Types may select, and all types that need a Power. A custom type is one of a group that kube-apiserver does
// not serve itself, such as gateway.networking.k8s.io.
func DefaultTypes(gr schema.GroupResource) bool {
	switch classify(gr).how {
	case byDefault:
		return true
	case custom:
		return gr.Group != v1alpha1.GroupVersion.Group
	}
	return false
}

// defaultTypes selects the types of DefaultTypes, and the types that need a Power. If Permit lacks the Power, the
// objects of such a type are only watched and reported. Namespaces, Endpoints and EndpointSlices are selected only
// with a permit, since their authors often do not set their labels: tools label a Namespace for the objects in it, and
// controllers copy the labels of a Service to its endpoints.
func (o Options) defaultTypes(gr schema.GroupResource) bool {
	c := classify(gr)
	derived := c.power == PermitNamespaces || c.power == PermitEndpoints
	return DefaultTypes(gr) || c.how == byPermit && (!derived || slices.Contains(o.Permit, c.power))
}

// refusesType returns why a type is not synced although both sides serve it; "" if it is synced.
func (o Options) refusesType(gr schema.GroupResource) string {
	if why := permits(o.Permit, gr); why != "" {
		return why
	}
	if o.Refuse == nil {
		return ""
	}
	return o.Refuse(gr, nil)
}

// checkPermit returns an error for each invalid entry of Permit, and for selected types that need a Power which Permit
// lacks.
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

// Transformer changes an object on its way down. It may modify obj, except for its type, name and namespace, and may
// return Skip. Its result must depend on obj alone. docs/extend.md has an example.
type Transformer func(obj *unstructured.Unstructured) error

// Skip is returned by a Transformer for an object that is not to be written downstream now. A downstream object that
// exists stays; its status does not go up.
var Skip = errors.New("skipped by a transformer") //nolint:errname,revive,staticcheck // named like fs.SkipDir

// AdoptPolicy is the policy for an object downstream that this syncer did not create and that has the name of an
// object to be created.
type AdoptPolicy int

const (
	// AdoptNever leaves the object alone and reports ReasonForeign.
	AdoptNever AdoptPolicy = iota
	// AdoptEqual takes the object over if that changes nothing but labels and annotations, and reports ReasonForeign
	// otherwise.
	AdoptEqual
	// AdoptAlways takes the object over. Fields that the upstream object does not have stay.
	AdoptAlways
)

// DeleteCap limits deletions downstream, and deletions upstream that follow a deletion downstream. A type exceeds it
// if, within the time Within, more than Objects objects and more than the part Share of all objects of the type would
// be deleted. Then no object of this type is deleted until Syncer.Release is called, or until no deletion waits any
// longer. A new process starts a new count.
type DeleteCap struct {
	// Objects is the number of objects that may be deleted in any case; zero: 10; negative: without limit.
	Objects int
	// Share is the part of a type that may be deleted, above 0 and up to 1; zero: 0.3.
	Share float64
	// Within is the time over which deletions are counted; zero: a minute.
	Within time.Duration
}

// complete returns the options with their defaults, and the error of check.
func (o Options) complete() (Options, error) {
	o = o.withDefaults()
	return o, o.check()
}

func (o Options) withDefaults() Options {
	o.Label = cmp.Or(o.Label, v1alpha1.ClusterLabel)
	if o.Report == nil {
		all := o.Types == nil
		o.Report = func(schema.GroupResource) bool { return all }
	}
	if o.Types == nil {
		o.Types = o.defaultTypes
	}
	if o.Namespaces == nil {
		o.Namespaces = SameNamespaces()
	}
	o.DeleteCap.Objects = cmp.Or(o.DeleteCap.Objects, 10)
	o.DeleteCap.Share = cmp.Or(o.DeleteCap.Share, 0.3)
	o.DeleteCap.Within = cmp.Or(o.DeleteCap.Within, time.Minute)
	o.Fights.Times = cmp.Or(o.Fights.Times, 5)
	o.Fights.Within = cmp.Or(max(0, o.Fights.Within), 5*time.Minute)
	o.Workers = cmp.Or(max(0, o.Workers), 16)
	o.Discovery = cmp.Or(max(0, o.Discovery), 30*time.Second)
	if o.Lease == 0 || o.Heartbeat <= 0 {
		o.Lease = 3 * max(0, o.Heartbeat)
	}
	o.Capacity = cmp.Or(o.Capacity, time.Minute)
	return o
}

// check returns an error that names all invalid options, except those in Permit, Transform and Rules: New checks these
// three. The defaults must be set.
func (o Options) check() error {
	var wrong []error
	if problems := validation.IsValidLabelValue(o.Target); o.Target == "" || len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("options: Target %q: want the name of a SyncTarget that is a valid label value: %s", o.Target, strings.Join(problems, "; ")))
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
	if err := o.NamespaceSync.check(); err != nil {
		wrong = append(wrong, err)
	}
	if o.NamespaceSync.enabled() && slices.Contains(o.Permit, PermitNamespaces) {
		wrong = append(wrong, errors.New("options: NamespaceSync and Permit of Namespaces: with the permit namespaces are objects like others: choose one"))
	}
	if !(o.DeleteCap.Share > 0 && o.DeleteCap.Share <= 1) {
		wrong = append(wrong, fmt.Errorf("options: DeleteCap.Share %v: want a part of the whole, above 0 and up to 1", o.DeleteCap.Share))
	}
	return errors.Join(wrong...)
}

// types returns the built-in declarations of types, and those of WorkloadTypes.
func (o Options) types() ([]*workload.Type, error) {
	all := workload.Builtin()
	for i, spec := range o.WorkloadTypes {
		t, err := workload.Compile(spec)
		if err == nil {
			err = t.NotBuiltin()
		}
		if err != nil {
			return nil, fmt.Errorf("WorkloadTypes[%d] (%s): %w", i, spec.Resource.Resource, err)
		}
		all = append(all, t)
	}
	return all, nil
}
