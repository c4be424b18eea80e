// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// stateLabel is a label with the value of spec.state, so that a list can select records by state.
const stateLabel = "fanout.atoll.dev/state"

// validate returns an error if this Log does not accept e.
func validate(e wal.Entry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if wrong := validation.IsDNS1123Subdomain(e.ID); len(wrong) > 0 {
		return &wal.FieldError{Field: "ID", Reason: fmt.Sprintf("%q is the name of an object in the central log: %s", e.ID, wrong[0])}
	}
	return nil
}

// record returns an object that stores e in the given state.
func (l *Log) record(e wal.Entry, state v1alpha1.OperationState) *v1alpha1.Operation {
	o := &v1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Name: e.ID},
		Spec: v1alpha1.OperationSpec{
			Operation: e.ID, Kind: e.Kind, Key: e.Key, Holder: e.Owner, Step: e.State, Payload: e.Data, Began: stamp(e.Began),
		},
	}
	if l.opts.Describe != nil {
		d := l.opts.Describe(e)
		o.Spec.Action, o.Spec.Object = cut(d.Action, 64), cut(d.Object, 1024)
	}
	become(o, state)
	return o
}

// cut truncates a description to limit bytes, the maximum in the schema.
func cut(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// become sets the state of the record o, in the spec and in the label.
func become(o *v1alpha1.Operation, state v1alpha1.OperationState) {
	o.Spec.State = state
	o.Labels = map[string]string{stateLabel: string(state)}
}

// entry returns the entry that the record o stores.
func entry(o *v1alpha1.Operation) (wal.Entry, error) {
	e := wal.Entry{
		ID: o.Name, Kind: o.Spec.Kind, Key: o.Spec.Key, Owner: o.Spec.Holder, State: o.Spec.Step, Data: o.Spec.Payload,
		Version: version(o), Outcome: o.Spec.Outcome,
	}
	var err, wrong error
	if e.Began, err = time.Parse(time.RFC3339Nano, o.Spec.Began); err != nil {
		wrong = fmt.Errorf("spec.began: %w", err)
	}
	if o.Spec.Ended != "" {
		if e.Ended, err = time.Parse(time.RFC3339Nano, o.Spec.Ended); err != nil {
			wrong = fmt.Errorf("spec.ended: %w", err)
		}
	}
	if o.Spec.Operation != o.Name {
		wrong = fmt.Errorf("spec.operation is %q", o.Spec.Operation)
	}
	if wrong != nil {
		return e, corrupt(o.Name, wrong)
	}
	return e, nil
}

func corrupt(name string, err error) error {
	return &wal.CorruptError{Path: "operations.fanout.atoll.dev", ID: name, Err: err}
}

// decode converts an object of the API server to an Operation.
func decode(u *unstructured.Unstructured) (*v1alpha1.Operation, error) {
	o := &v1alpha1.Operation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, corrupt(u.GetName(), err)
	}
	return o, nil
}

func encode(o *v1alpha1.Operation) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("operation %s: %w", o.Name, err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Operation"))
	return u, nil
}

// version returns the token of compare-and-swap: the object's UID and its resourceVersion.
func version(o *v1alpha1.Operation) string { return string(o.UID) + "/" + o.ResourceVersion }

var errVersion = errors.New("it has no version of this log")

func parseVersion(v string) (uid types.UID, rv string, err error) {
	u, rv, ok := strings.Cut(v, "/")
	if !ok || u == "" || rv == "" {
		return "", "", errVersion
	}
	return types.UID(u), rv, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
