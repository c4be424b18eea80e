// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// fields are those of one object that go against the stream: of the spec up, of the status down.
func fields(obj *unstructured.Unstructured, which func(rule) bool, of rules) map[string]any {
	found := map[string]any{}
	for _, r := range of {
		if !which(r) {
			continue
		}
		if v, ok, _ := unstructured.NestedFieldCopy(obj.Object, r.names()...); ok {
			_ = unstructured.SetNestedField(found, v, r.names()...) // a rule above it may have set it already
		}
	}
	return found
}

// bare is an object that names obj and has nothing else.
func bare(obj *unstructured.Unstructured) *unstructured.Unstructured {
	named := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}}
	named.SetName(obj.GetName())
	named.SetNamespace(obj.GetNamespace())
	named.SetUID(obj.GetUID())
	return named
}

func goesUp(r rule) bool { return r.up }

// bringFieldsUp writes upstream what d has in fields that belong to the downstream and that a rule says Up of. known is what
// u has in them. It changes u to what is then upstream. A Splitter that owns a field of a shard would write it back.
func (l *lane) bringFieldsUp(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured, known map[string]any) error {
	found := fields(d, func(r rule) bool {
		return goesUp(r) && (r.owner == Downstream || !loop.OwnsPath(d, manager, r.names()...)) && !loop.OwnsPath(u, splitterv1alpha1.Manager, r.names()...)
	}, l.rules)
	if len(found) == 0 {
		return nil
	}
	wish := bare(u)
	for name, v := range found {
		wish.Object[name] = v
	}
	current := &unstructured.Unstructured{Object: known}
	current.Object["metadata"] = u.Object["metadata"]
	if !loop.Differs(current, wish, l.syncer.fieldsManager) {
		return nil
	}
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return fmt.Errorf("encode fields: %w", err)
	}
	after, err := l.upMeta(key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, data, l.syncer.patchBy(l.syncer.fieldsManager))
	if err != nil {
		return wrap("write fields upstream", err)
	}
	u.SetResourceVersion(after.GetResourceVersion())
	u.SetGeneration(after.GetGeneration())
	l.wrote(ctx, WriteFields, key)
	return nil
}

// statusGoesDown says whether a rule gives a field of the status to the upstream.
func statusGoesDown(r rule) bool { return r.ofStatus() && r.owner == Upstream }

// bringStatusDown writes downstream the part of u's status that belongs to the upstream. What is observed of u's generations
// is then observed of those of d.
func (l *lane) bringStatusDown(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured) (again time.Duration, err error) {
	status, _ := fields(u, statusGoesDown, l.rules)["status"].(map[string]any)
	if len(status) == 0 {
		l.statusKnownBelow(key)
		return 0, nil // what is known stays
	}
	var subresources []string
	if l.kind.DownStatus {
		subresources = []string{"status"}
		translateGenerations(status, u.GetGeneration(), d.GetGeneration())
	} else {
		delete(status, "observedGeneration") // writing it makes another generation
	}
	wish := bare(d)
	wish.SetAPIVersion(u.GetAPIVersion())
	wish.SetKind(u.GetKind())
	wish.Object["status"] = status
	if !loop.Differs(d, wish, l.syncer.statusManager, subresources...) {
		l.statusKnownBelow(key)
		return 0, nil
	}
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return 0, fmt.Errorf("encode status: %w", err)
	}
	hash, generation := digest(data), fmt.Sprint(d.GetGeneration())
	if wait := l.memo(key).statusDown.holds(hash, generation); wait > 0 {
		return wait, nil
	}
	wish.SetResourceVersion(d.GetResourceVersion()) // of custom resources' status, servers do not look at the UID
	if data, err = json.Marshal(wish.Object); err != nil {
		return 0, fmt.Errorf("encode status: %w", err)
	}
	_, err = l.downMeta(d.GetNamespace()).Patch(ctx, d.GetName(), types.ApplyPatchType, data, l.syncer.patchBy(l.syncer.statusManager), subresources...)
	err = wrap("write status downstream", err)
	switch {
	case refusesStatus(err):
		l.remember(key, func(m *memo) {
			m.statusDown = refusal{hash: hash, state: generation, until: time.Now().Add(retryStatus), why: err.Error()}
		})
		return retryStatus, nil
	case err != nil:
		return 0, err
	}
	l.statusKnownBelow(key)
	l.wrote(ctx, WriteStatusDown, key)
	return 0, nil
}

// statusKnownBelow is for an object of whose status the copy has what is to go down.
func (l *lane) statusKnownBelow(key types.NamespacedName) {
	if l.memo(key).statusDown != (refusal{}) {
		l.remember(key, func(m *memo) { m.statusDown = refusal{} })
	}
}

// againstTheStream says whether a rule makes a field go up, or one of the status down.
func againstTheStream(r rule) bool { return goesUp(r) || statusGoesDown(r) }

// downstreamStatus is what of d's status belongs to the downstream.
func (l *lane) downstreamStatus(d *unstructured.Unstructured) map[string]any {
	status, _ := d.Object["status"].(map[string]any)
	copied := false
	for _, r := range l.rules {
		if !statusGoesDown(r) {
			continue
		}
		if len(r.path) == 1 {
			return nil
		}
		if !copied {
			status, copied = runtime.DeepCopyJSON(status), true
		}
		remove(status, r.path[1:])
	}
	return status
}
