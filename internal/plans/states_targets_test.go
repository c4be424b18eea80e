// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func targetsBeginning(*rand.Rand) beginning {
	return beginning{
		servers: serve(map[string]func() (*regiontest.Definitions, error){"up": targetTypes, "a": nil, "b": nil}, nil),
		loops:   []perturb.Loop{{Name: "targets", Run: runTargets}},
		strokes: strokesOfRegistry(), quiet: 3 * time.Minute, beats: heartbeats, holds: registered,
	}
}

func registryRef(w *world) ref {
	return ref{upstream, syncTargets, types.NamespacedName{Name: one(w, "a", "b")}}
}

func secretRef(w *world) ref {
	return ref{upstream, resourceOf["Secret"], types.NamespacedName{Namespace: "default", Name: one(w, "a", "b")}}
}

// strokesOfRegistry returns strokes on the registration of clusters.
func strokesOfRegistry() []stroke {
	register := stroke{"registered", func(w *world) error {
		at := registryRef(w)
		o, err := objectOf(syncTarget(at.Name))
		if err != nil {
			return err
		}
		_, err = w.apply(at, "user", o)
		return err
	}}
	write := func(at ref, w *world, kubeconfig string) error {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"data": map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig))}}}
		after, err := w.apply(at, "user", obj)
		if err == nil {
			w.keep(at, after)
		}
		return err
	}
	credentials := stroke{"Secret written", func(w *world) error {
		at := secretRef(w)
		return write(at, w, kubeconfig(w.access, at.Name, one(w, "first", "second")))
	}}
	labelled := stroke{"ConfigMap applied", func(w *world) error {
		at := ref{upstream, configMaps, types.NamespacedName{Namespace: "default", Name: one(w, "x", "y")}}
		obj := content(configMaps, at.Name, 1+w.IntN(3))
		obj.SetLabels(map[string]string{syncerv1alpha1.ClusterLabel: one(w, "a", "b")})
		after, err := w.apply(at, "user", obj)
		if err == nil {
			w.keep(at, after)
		}
		return err
	}}
	return []stroke{
		register, register, register, credentials, credentials, credentials, labelled, labelled,
		{"malformed Secret", func(w *world) error {
			return write(secretRef(w), w, one(w, "", "none", "{}", `{"apiVersion":"v1","kind":"Config"}`))
		}},
		{"Secret of another cluster", func(w *world) error {
			return write(secretRef(w), w, kubeconfig(w.access, one(w, "a", "b", "up"), "third"))
		}},
		{"Secret A, B, A", func(w *world) error {
			at := secretRef(w)
			for _, token := range []string{"first", "second", "first"} {
				if err := write(at, w, kubeconfig(w.access, at.Name, token)); err != nil {
					return err
				}
				time.Sleep(time.Duration(w.IntN(40)) * time.Second)
			}
			return nil
		}},
		{"Secret deleted", func(w *world) error { return w.delete(secretRef(w)) }},
		{"taken out", func(w *world) error { return w.delete(registryRef(w)) }},
		{"taken out by force", func(w *world) error { return w.remove(registryRef(w)) }},
		{"without finalizer", func(w *world) error {
			_, err := w.merge(registryRef(w), "somebody", inMetadata(map[string]any{"finalizers": nil}))
			return err
		}},
		{"status from elsewhere", func(w *world) error {
			_, err := w.merge(registryRef(w), one(w, "somebody", "atoll-syncer-targets", "atoll-syncer-a"), map[string]any{"status": map[string]any{
				"lastSyncerHeartbeatTime": one[any](w, nil, "1999-01-01T00:00:00Z", "2200-01-01T00:00:00Z"), "conditions": []any{map[string]any{
					"type": one(w, "Ready", "SyncerReady", "Odd"), "status": one(w, "True", "False"), "reason": "Odd", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}},
			}}, "status")
			return err
		}},
		{"ConfigMap with a finalizer of a syncer", func(w *world) error {
			at := ref{upstream, configMaps, types.NamespacedName{Namespace: "default", Name: one(w, "x", "y")}}
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"finalizers": []any{syncerv1alpha1.FinalizerPrefix + one(w, "a", "b")}}))
			return err
		}},
		{"deleted", func(w *world) error {
			return w.delete(ref{upstream, configMaps, types.NamespacedName{Namespace: "default", Name: one(w, "x", "y")}})
		}},
	}
}

// registered requires that each registered cluster with a working Secret is Ready and has its
// ConfigMaps, and that no SyncTarget is still being deleted. It does not check a cluster that has
// no working Secret, or whose SyncTarget reports that another cluster answers.
func registered(ctx context.Context, w *world) error {
	errs := []error{w.untouched()}
	clusters, err := w.list(ctx, upstream, syncTargets)
	if err != nil {
		return err
	}
	settings, err := w.list(ctx, upstream, configMaps)
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		target := clusters[types.NamespacedName{Name: name}]
		if target == nil {
			continue
		}
		if target.GetDeletionTimestamp() != nil {
			errs = append(errs, fmt.Errorf("%s is still being taken out: %s", name, brief(target)))
			continue
		}
		ready := conditionIn(target, "Ready")["status"]
		credentials, err := w.get(ref{upstream, resourceOf["Secret"], types.NamespacedName{Namespace: "default", Name: name}})
		reaches := err == nil && slices.ContainsFunc([]string{"first", "second"}, func(token string) bool {
			data, _, _ := unstructured.NestedString(credentials.Object, "data", "kubeconfig")
			return data == base64.StdEncoding.EncodeToString([]byte(kubeconfig(w.access, name, token)))
		})
		message, _ := conditionIn(target, "Ready")["message"].(string)
		if !reaches || strings.HasPrefix(message, "another cluster answers") {
			continue // a Syncer does not switch to another cluster
		}
		if ready != "True" {
			errs = append(errs, fmt.Errorf("%s is registered and reached, and Ready is %v: %s", name, ready, brief(target)))
		}
		owner, err := ownerOf(w, name)
		if err != nil {
			return err
		}
		for key, u := range settings {
			d, err := w.get(ref{name, configMaps, key})
			if u.GetLabels()[syncerv1alpha1.ClusterLabel] == name && u.GetDeletionTimestamp() == nil && (err != nil || fmt.Sprint(d.Object["data"]) != fmt.Sprint(u.Object["data"])) {
				if err == nil && (d.GetAnnotations()[uidMark] != string(u.GetUID()) || d.GetLabels()[ownerLabel] != owner) {
					continue // the downstream object belongs to another origin or another target
				}
				errs = append(errs, fmt.Errorf("%s in %s is %s, and upstream %s", key.Name, name, brief(d), brief(u)))
			}
		}
	}
	return errors.Join(errs...)
}
