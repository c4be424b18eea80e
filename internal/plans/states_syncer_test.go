// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/syncer"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Names that a Syncer writes and that package syncer does not export.
const (
	syncerManager = "atoll-syncer"
	ownerLabel    = "syncer.atoll.dev/owner"
	originMark    = "syncer.atoll.dev/origin"
	uidMark       = "syncer.atoll.dev/uid"
	appliedMark   = "syncer.atoll.dev/applied"
)

// synced holds the syncers of one upstream in a random state, with their random options.
type synced struct {
	targets []string
	opts    syncer.Options
	prefix  string // of namespaces downstream

	mu      sync.Mutex
	syncers map[string]*syncer.Syncer // running syncers, by target
}

func syncerBeginning(r *rand.Rand) beginning {
	s := &synced{targets: []string{"a"}, syncers: map[string]*syncer.Syncer{}}
	s.opts = syncer.Options{Types: onlyTypes(configMaps, deployments), Discovery: seldom, Conditions: r.IntN(3) == 0}
	if r.IntN(3) == 0 {
		s.targets = []string{"a", "b"}
	}
	if r.IntN(4) == 0 {
		s.prefix = "acme-"
		s.opts.Namespaces = syncer.PrefixNamespaces(s.prefix)
	}
	b := beginning{servers: servers(s.targets...), strokes: s.strokes(), holds: s.holds}
	for _, target := range s.targets {
		b.loops = append(b.loops, s.loop(target), workloads(target))
	}
	return b
}

func (s *synced) loop(target string) perturb.Loop {
	opts := s.opts
	opts.Target = target
	return starts("syncer of "+target, func(access perturb.Access) (interface{ Start(context.Context) error }, error) {
		up, err := api(access, upstream)
		if err != nil {
			return nil, err
		}
		down, err := api(access, target)
		if err != nil {
			return nil, err
		}
		made, err := syncer.New(up, down, opts)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.syncers[target] = made
		return made, err
	})
}

// randomRef returns the place of a random object upstream, from a small set.
func (s *synced) randomRef(w *world) ref {
	return ref{upstream, one(w, configMaps, deployments), types.NamespacedName{Namespace: "default", Name: one(w, "x", "y")}}
}

// below returns the place of the downstream object that belongs to the upstream object at up.
func (s *synced) below(target string, up ref) ref {
	up.server, up.Namespace = target, s.prefix+up.Namespace
	return up
}

// content returns the object that a user applies, in one of several variants.
func content(gvr schema.GroupVersionResource, name string, variant int) *unstructured.Unstructured {
	if gvr == configMaps {
		data := map[string]any{"value": fmt.Sprint(variant)}
		if variant%2 == 1 {
			data["odd"] = "yes"
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	}
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
		"replicas": int64(variant), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": fmt.Sprintf("web:%d", variant)}}},
		},
	}}}
}

// given makes a user apply an object upstream, for some of the targets.
func (s *synced) given(w *world, at ref, variant int) error {
	obj := content(at.gvr, at.Name, variant)
	labels := map[string]string{"team": one(w, "one", "two")}
	switch target := one(w, s.targets...); w.IntN(5) {
	case 0:
	case 1:
		for _, t := range s.targets {
			labels[syncerv1alpha1.StateLabelPrefix+t] = syncerv1alpha1.StateSync
		}
	default:
		labels[syncerv1alpha1.ClusterLabel] = target
	}
	obj.SetLabels(labels)
	return s.users(w, at, obj)
}

func (s *synced) users(w *world, at ref, obj *unstructured.Unstructured) error {
	after, err := w.apply(at, "user", obj)
	if err == nil {
		w.keep(at, after, "team")
	}
	return err
}

// marks returns the labels and annotations that the Syncer of a target writes for the upstream
// object to which of refers. Unless right is set, each of them is right, wrong or missing.
func (s *synced) marks(w *world, target string, of ref, right bool) (labels, annotations map[string]string, err error) {
	up, err := w.get(of)
	uid := "gone"
	if err == nil {
		uid = string(up.GetUID())
	}
	owner, err := ownerOf(w, target)
	if err != nil {
		return nil, nil, err
	}
	labels = map[string]string{ownerLabel: owner}
	annotations = map[string]string{originMark: of.NamespacedName.String(), uidMark: uid, appliedMark: "of-another-time"}
	if right {
		return labels, annotations, nil
	}
	for mark, wrong := range map[string]string{originMark: one(w, "default/other", "a/b/c", ""), uidMark: one(w, "another", "", " ")} {
		switch w.IntN(3) {
		case 0:
			annotations[mark] = wrong
		case 1:
			delete(annotations, mark)
		}
	}
	switch w.IntN(4) {
	case 0:
		labels = map[string]string{}
	case 1:
		labels[ownerLabel] = "another"
	}
	return labels, annotations, nil
}

// ownerOf returns the value of the owner label of a target's Syncer.
func ownerOf(w *world, target string) (string, error) {
	ns, err := w.get(ref{upstream, namespaces, types.NamespacedName{Name: "kube-system"}})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(string(ns.GetUID()) + "/" + target))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])), nil
}

// writeBelow writes an object downstream, and creates its namespace if needed.
func (s *synced) writeBelow(w *world, at ref, manager string, obj *unstructured.Unstructured, apply bool) (*unstructured.Unstructured, error) {
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	_, _ = w.create(ref{at.server, namespaces, types.NamespacedName{Name: at.Namespace}}, "somebody", ns) // the namespace may exist
	if apply {
		return w.apply(at, manager, obj)
	}
	return w.create(at, manager, obj)
}

// strokes returns strokes on objects upstream and downstream.
func (s *synced) strokes() []stroke {
	const finalizer = syncerv1alpha1.FinalizerPrefix
	below := func(w *world) (string, ref, ref) {
		target, up := one(w, s.targets...), s.randomRef(w)
		return target, up, s.below(target, up)
	}
	made := stroke{"applied", func(w *world) error { return s.given(w, s.randomRef(w), 1+w.IntN(3)) }}
	return []stroke{
		made, made, made, made, made, made, made, made,
		{"spec A, B, A", func(w *world) error {
			at := s.randomRef(w)
			obj := func(variant int) *unstructured.Unstructured {
				obj := content(at.gvr, at.Name, variant)
				obj.SetLabels(map[string]string{syncerv1alpha1.ClusterLabel: "a"})
				return obj
			}
			for _, variant := range []int{1, 2, 1} {
				if err := s.users(w, at, obj(variant)); err != nil {
					return err
				}
				time.Sleep(time.Duration(w.IntN(3)) * time.Second)
			}
			return nil
		}},
		{"deleted", func(w *world) error { return w.delete(s.randomRef(w)) }},
		{"deleted by force", func(w *world) error { return w.remove(s.randomRef(w)) }},
		{"replaced", func(w *world) error {
			at := s.randomRef(w)
			if err := w.remove(at); err != nil {
				return err
			}
			return s.given(w, at, 1+w.IntN(3))
		}},
		{"finalizer without a copy", func(w *world) error {
			at := s.randomRef(w)
			_, err := w.merge(at, one(w, "atoll-syncer-a", "somebody"), inMetadata(map[string]any{"finalizers": []any{finalizer + one(w, s.targets...)}}))
			return err
		}},
		{"copy without finalizer", func(w *world) error {
			_, err := w.merge(s.randomRef(w), "somebody", inMetadata(map[string]any{"finalizers": nil}))
			return err
		}},
		{"held by a finalizer of others upstream", func(w *world) error {
			_, err := w.merge(s.randomRef(w), "somebody", inMetadata(map[string]any{"finalizers": []any{"example.com/hold", finalizer + "a"}}))
			return err
		}},
		{"held by a finalizer of others downstream", func(w *world) error {
			_, _, at := below(w)
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"finalizers": []any{"example.com/hold"}}))
			return err
		}},
		{"foreign object in the place", func(w *world) error {
			_, _, at := below(w)
			obj, err := s.writeBelow(w, at, "somebody", content(at.gvr, at.Name, 7), false)
			if err == nil {
				w.keep(at, obj)
			}
			return err
		}},
		{"foreign object with our marks", func(w *world) error {
			target, up, at := below(w)
			obj := content(at.gvr, at.Name, 8)
			labels, annotations, err := s.marks(w, target, up, false)
			if err != nil {
				return err
			}
			obj.SetLabels(labels)
			obj.SetAnnotations(annotations)
			_, err = s.writeBelow(w, at, "somebody", obj, false)
			return err
		}},
		{"half-written copy", func(w *world) error {
			target, up, at := below(w)
			obj := content(at.gvr, at.Name, 1+w.IntN(3))
			labels, annotations, err := s.marks(w, target, up, w.IntN(2) == 0)
			if err != nil {
				return err
			}
			obj.SetLabels(labels)
			obj.SetAnnotations(annotations)
			_, err = s.writeBelow(w, at, syncerManager, obj, true)
			return err
		}},
		{"second copy under another name", func(w *world) error {
			target, up, at := below(w)
			at.Name += "-copy"
			obj := content(at.gvr, at.Name, 1+w.IntN(3))
			labels, annotations, err := s.marks(w, target, up, true)
			if err != nil {
				return err
			}
			obj.SetLabels(labels)
			obj.SetAnnotations(annotations)
			_, err = s.writeBelow(w, at, one(w, syncerManager, "somebody"), obj, true)
			return err
		}},
		{"marks lost", func(w *world) error {
			_, _, at := below(w)
			lost := map[string]any{}
			for _, mark := range []string{originMark, uidMark, appliedMark} {
				switch w.IntN(3) {
				case 0:
					lost[mark] = nil
				case 1:
					lost[mark] = one(w, "default/other", "", "another")
				}
			}
			fields := map[string]any{"annotations": lost}
			if w.IntN(3) == 0 {
				fields["labels"] = map[string]any{ownerLabel: one[any](w, nil, "another")}
			}
			_, err := w.merge(at, "somebody", inMetadata(fields))
			return err
		}},
		{"copy edited", func(w *world) error {
			_, _, at := below(w)
			patch := map[string]any{"data": map[string]any{"value": "theirs", "more": "theirs"}}
			if at.gvr == deployments {
				patch = map[string]any{"spec": map[string]any{"replicas": int64(9), "paused": true}}
			}
			_, err := w.merge(at, one(w, "somebody", "kubectl", syncerManager), patch)
			return err
		}},
		{"copy deleted", func(w *world) error { _, _, at := below(w); return w.delete(at) }},
		{"status of an older generation", func(w *world) error {
			_, _, at := below(w)
			at.gvr = deployments
			obj, err := w.get(at)
			if err != nil {
				return err
			}
			_, err = w.merge(at, "cluster", map[string]any{"status": map[string]any{
				"observedGeneration": max(0, obj.GetGeneration()-int64(w.IntN(3))), "replicas": int64(w.IntN(9)), "readyReplicas": int64(w.IntN(9)),
			}}, "status")
			return err
		}},
		{"status upstream from elsewhere", func(w *world) error {
			at := s.randomRef(w)
			at.gvr = deployments
			_, err := w.merge(at, one(w, "somebody", "atoll-syncer-status-a", "kube-controller-manager"), map[string]any{"status": map[string]any{
				"observedGeneration": int64(w.IntN(9)), "replicas": int64(w.IntN(9)), "availableReplicas": int64(0),
				"conditions": []any{map[string]any{"type": "Synced", "status": "True", "reason": "Synced", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
			}}, "status")
			return err
		}},
		{"malformed annotations", func(w *world) error {
			target := one(w, s.targets...)
			annotation := one(w, syncerv1alpha1.SyncedAnnotationPrefix, syncerv1alpha1.StatusAnnotationPrefix, syncerv1alpha1.UnscheduledAnnotationPrefix) + target
			_, err := w.merge(s.randomRef(w), one(w, "somebody", "atoll-syncer-condition-"+target, "atoll-syncer-"+target, "atoll-syncer-status-"+target),
				inMetadata(map[string]any{"annotations": map[string]any{annotation: one(w, "", "{", "[]", `{"status":7}`, `{"pods":-1}`, "null")}}))
			return err
		}},
		{"labels malformed", func(w *world) error {
			at := s.randomRef(w)
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"labels": map[string]any{
				syncerv1alpha1.ClusterLabel: one[any](w, nil, "", "nowhere", "a"), syncerv1alpha1.StateLabelPrefix + "a": one[any](w, nil, "", "sync", "Sync", "Upsync"),
			}}))
			return err
		}},
	}
}

// syncEnd is the end state of a type in a target.
type syncEnd struct {
	up, down map[types.NamespacedName]*unstructured.Unstructured
	problems map[types.NamespacedName]syncer.Reason // by place upstream, as the Syncer reports them
	owner    string
}

func (s *synced) holds(ctx context.Context, w *world) error {
	errs := []error{w.untouched()}
	for _, target := range s.targets {
		owner, err := ownerOf(w, target)
		if err != nil {
			return err
		}
		s.mu.Lock()
		status := s.syncers[target].Status()
		s.mu.Unlock()
		for _, gvr := range []schema.GroupVersionResource{configMaps, deployments} {
			end := syncEnd{owner: owner, problems: map[types.NamespacedName]syncer.Reason{}}
			if end.up, err = w.list(ctx, upstream, gvr); err != nil {
				return err
			}
			if end.down, err = w.list(ctx, target, gvr); err != nil {
				return err
			}
			for _, t := range status.Types {
				if t.Resource != gvr {
					continue
				}
				errs = append(errs, t.Err)
				for _, p := range t.Problems {
					end.problems[p.Object] = p.Reason
				}
			}
			if err := s.judge(target, end); err != nil {
				errs = append(errs, fmt.Errorf("%s of %s: %w; problems: %v", gvr.Resource, target, err, end.problems))
			}
		}
	}
	return errors.Join(errs...)
}

// judge returns an error unless the end state of a type is as documented.
func (s *synced) judge(target string, end syncEnd) error {
	var errs []error
	places := map[types.NamespacedName]bool{}
	for key := range end.up {
		places[key] = true
	}
	for place := range end.down {
		if ns, ok := strings.CutPrefix(place.Namespace, s.prefix); ok {
			places[types.NamespacedName{Namespace: ns, Name: place.Name}] = true
		}
	}
	for key := range places {
		place := types.NamespacedName{Namespace: s.prefix + key.Namespace, Name: key.Name}
		if err := s.judgeObject(target, end, key, end.up[key], end.down[place], end.problems[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w\n  upstream: %s\n  downstream: %s", key, err, brief(end.up[key]), brief(end.down[place])))
		}
	}
	return errors.Join(errs...)
}

func brief(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "nothing"
	}
	obj = obj.DeepCopy()
	for _, field := range []string{"managedFields", "creationTimestamp", "namespace"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "spec", "template")
	data, _ := json.Marshal(obj.Object)
	return string(data)
}

var (
	whereForeign = []syncer.Reason{syncer.ReasonForeign, syncer.ReasonCollision, syncer.ReasonOriginGone}
	whereOrphan  = []syncer.Reason{syncer.ReasonForeign, syncer.ReasonOriginGone, syncer.ReasonHeld}
)

func (s *synced) judgeObject(target string, end syncEnd, key types.NamespacedName, u, d *unstructured.Unstructured, problem syncer.Reason) error {
	labelled := d != nil && d.GetLabels()[ownerLabel] == end.owner
	signed := labelled && loop.Applied(d, syncerManager, "metadata", "labels", ownerLabel)
	marks := map[string]string{}
	if d != nil {
		marks = d.GetAnnotations()
	}
	going := d != nil && d.GetDeletionTimestamp() != nil
	switch {
	case u == nil && !labelled:
		return nil
	case u == nil || !selected(u, target):
		if labelled && !going && !slices.Contains(whereOrphan, problem) {
			return fmt.Errorf("nothing upstream asks for the copy, and it stays (%q)", problem)
		}
		if u != nil && slices.Contains(u.GetFinalizers(), syncerv1alpha1.FinalizerPrefix+target) && problem == "" && !going {
			return errors.New("it is not for this cluster, and has its finalizer")
		}
		return nil
	case u.GetDeletionTimestamp() != nil:
		if slices.Contains(u.GetFinalizers(), syncerv1alpha1.FinalizerPrefix+target) && !going && problem == "" {
			return errors.New("it is being deleted, its copy is not, and no problem is reported")
		}
		return nil
	case d == nil:
		return fmt.Errorf("it has no copy (%q)", problem)
	case going:
		return nil
	case !signed || marks[uidMark] != string(u.GetUID()) || marks[originMark] != loop.KeyText(key):
		if !slices.Contains(whereForeign, problem) {
			return fmt.Errorf("something else has its place, and the problem is %q", problem)
		}
		return s.judgeCondition(target, u, problem)
	case problem != "":
		return fmt.Errorf("it has a copy, and the problem %q", problem)
	}
	return errors.Join(s.judgeCopy(target, u, d), s.judgeStatus(target, u, d), s.judgeCondition(target, u, ""))
}

func selected(u *unstructured.Unstructured, target string) bool {
	labels := u.GetLabels()
	return labels[syncerv1alpha1.ClusterLabel] == target || labels[syncerv1alpha1.StateLabelPrefix+target] == syncerv1alpha1.StateSync
}

// judgeCopy compares a downstream object with its origin. The downstream object may have further
// fields, which other clients added.
func (s *synced) judgeCopy(target string, u, d *unstructured.Unstructured) error {
	if !slices.Contains(u.GetFinalizers(), syncerv1alpha1.FinalizerPrefix+target) {
		return errors.New("it has a copy and no finalizer")
	}
	for _, field := range []string{"data", "spec"} {
		if err := within(field, u.Object[field], d.Object[field]); err != nil {
			return err
		}
	}
	if u.GetLabels()["team"] != d.GetLabels()["team"] {
		return fmt.Errorf("the copy has the label team=%s", d.GetLabels()["team"])
	}
	return nil
}

// within requires that b contains all of a.
func within(path string, a, b any) error {
	fields, ok := a.(map[string]any)
	if !ok {
		if !reflect.DeepEqual(a, b) {
			return fmt.Errorf("the copy has %s %v, not %v", path, b, a)
		}
		return nil
	}
	other, _ := b.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := within(path+"."+name, fields[name], other[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *synced) judgeStatus(target string, u, d *unstructured.Unstructured) error {
	observed, ok, _ := unstructured.NestedInt64(d.Object, "status", "observedGeneration")
	if !ok || observed < d.GetGeneration() {
		return nil
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	shared := u.GetLabels()[syncerv1alpha1.ClusterLabel] != target
	if shared {
		status = map[string]any{}
		if err := json.Unmarshal([]byte(u.GetAnnotations()[syncerv1alpha1.StatusAnnotationPrefix+target]), &status); err != nil {
			return fmt.Errorf("its status of this cluster cannot be read: %w", err)
		}
	}
	for _, counter := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
		want, _, _ := unstructured.NestedInt64(d.Object, "status", counter)
		if got := fmt.Sprint(status[counter]); got != fmt.Sprint(want) && (want != 0 || status[counter] != nil) {
			return fmt.Errorf("its status has %s %s, and the copy's has %d", counter, got, want)
		}
	}
	if shared && u.GetKind() == "Deployment" {
		return nil // a changed annotation increments the generation of a Deployment, so the annotation has no generation
	}
	if got := fmt.Sprint(status["observedGeneration"]); got != fmt.Sprint(u.GetGeneration()) {
		return fmt.Errorf("its status is of generation %s, not %d", got, u.GetGeneration())
	}
	return nil
}

// judgeCondition requires that the condition Synced agrees with the reported problem.
func (s *synced) judgeCondition(target string, u *unstructured.Unstructured, problem syncer.Reason) error {
	if !s.opts.Conditions {
		return nil
	}
	want := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Synced"}
	if problem != "" {
		want = metav1.Condition{Status: metav1.ConditionFalse, Reason: string(problem)}
	}
	var said []metav1.Condition
	if text, ok := u.GetAnnotations()[syncerv1alpha1.SyncedAnnotationPrefix+target]; ok {
		var c metav1.Condition
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return fmt.Errorf("its condition cannot be read: %w", err)
		}
		said = append(said, c)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, v := range conditions {
		fields, _ := v.(map[string]any)
		if name := fields["type"]; name == syncerv1alpha1.SyncedCondition || name == syncerv1alpha1.SyncedCondition+"-"+target {
			said = append(said, metav1.Condition{Status: metav1.ConditionStatus(fmt.Sprint(fields["status"])), Reason: fmt.Sprint(fields["reason"])})
		}
	}
	for _, c := range said {
		if c.Status == want.Status && c.Reason == want.Reason {
			return nil
		}
	}
	return fmt.Errorf("its condition is not %s %s: %v", want.Status, want.Reason, said)
}
