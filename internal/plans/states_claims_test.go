// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

func claimsBeginning(*rand.Rand) beginning {
	return beginning{
		servers: serve(map[string]func() (*regiontest.Definitions, error){"plane": nil, "eu": claimTypes, "us": claimTypes},
			map[string][]string{"plane": {kubecarrier}, "eu": {loodse}, "us": {loodse}}),
		loops:   []perturb.Loop{{Name: "arbiter", Run: arbiter("eu", "us")}},
		strokes: strokesOfClaims(), quiet: 2 * time.Minute,
		holds: func(ctx context.Context, w *world) error {
			return errors.Join(w.untouched(), judgeClaims(ctx, w))
		},
	}
}

func claimRef(w *world, kind string) ref {
	return ref{one(w, "eu", "us"), resourceOf[kind], types.NamespacedName{Namespace: "loodse", Name: one(w, "a", "b")}}
}

func leaseRef(w *world) ref {
	return ref{"plane", leases, types.NamespacedName{Namespace: "kubecarrier-system", Name: one(w, "a", "b") + ".loodse"}}
}

// strokesOfClaims returns strokes on claims of regions, on the ServiceClusters of these regions,
// and on the decisions about the claims.
func strokesOfClaims() []stroke {
	ofRing := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubecarrier.io/v1alpha1", "kind": kind, "spec": map[string]any{}}}
	}
	claims := stroke{"claim applied", func(w *world) error {
		_, err := w.apply(claimRef(w, "RegionClaim"), "user", ofRing("RegionClaim"))
		return err
	}}
	return []stroke{
		claims, claims, claims, claims,
		{"cluster applied", func(w *world) error {
			_, err := w.apply(claimRef(w, "ServiceCluster"), "user", ofRing("ServiceCluster"))
			return err
		}},
		{"claim given up and made again (A, B, A)", func(w *world) error {
			at := claimRef(w, "RegionClaim")
			if err := w.delete(at); err != nil {
				return err
			}
			time.Sleep(time.Duration(w.IntN(3)) * time.Second)
			_, err := w.apply(at, "user", ofRing("RegionClaim"))
			return err
		}},
		{"deleted", func(w *world) error { return w.delete(claimRef(w, one(w, "RegionClaim", "ServiceCluster"))) }},
		{"held by a finalizer of others", func(w *world) error {
			at := claimRef(w, "RegionClaim")
			if _, err := w.merge(at, "somebody", inMetadata(map[string]any{"finalizers": []any{"example.com/hold"}})); err != nil {
				return err
			}
			return w.delete(at)
		}},
		{"status of a claim from elsewhere", func(w *world) error {
			_, err := w.merge(claimRef(w, "RegionClaim"), one(w, "somebody", claim.FieldManager), map[string]any{"status": map[string]any{
				"observedGeneration": int64(w.IntN(3)), "phase": one(w, "Bound", "Bound", "Conflict", "Pending"),
				"holder": map[string]any{"peer": one(w, "eu", "us", "gone"), "since": one(w, "2026-01-01T00:00:00Z", "2020-01-01T00:00:00Z")},
			}}, "status")
			return err
		}},
		{"status written by an arbiter in part", func(w *world) error {
			obj := ofRing("RegionClaim")
			delete(obj.Object, "spec")
			at := claimRef(w, "RegionClaim")
			obj.Object["status"] = map[string]any{"phase": one(w, "Bound", "Conflict"), "holder": map[string]any{"peer": one(w, at.server, "gone"), "since": "2026-01-01T00:00:00Z"}}
			_, err := w.apply(at, claim.FieldManager, obj, "status")
			return err
		}},
		{"gate from elsewhere", func(w *world) error {
			_, err := w.merge(claimRef(w, "ServiceCluster"), one(w, "somebody", claim.FieldManager), map[string]any{"status": map[string]any{
				"phase": one(w, "Ready", "Pending", "NotReady"), "conditions": []any{map[string]any{
					"type": "RegionBound", "status": one(w, "True", "False"), "reason": "Odd", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}},
			}}, "status")
			return err
		}},
		{"decision half written", func(w *world) error {
			at := leaseRef(w)
			region := one(w, at.Name, at.Name, "other.loodse")
			uid := "gone"
			if c, err := w.get(ref{one(w, "eu", "us"), resourceOf["RegionClaim"], types.NamespacedName{Namespace: "loodse", Name: at.Name[:1]}}); err == nil {
				uid = string(c.GetUID())
			}
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": map[string]any{
				"holderIdentity": one(w, "eu", "us", "gone"), "acquireTime": "2026-01-01T00:00:00.000000Z",
			}}}
			obj.SetLabels(map[string]string{claim.DecisionLabel: "region"})
			obj.SetAnnotations(map[string]string{"claim.atoll.dev/region": region, "claim.atoll.dev/uid": uid})
			switch w.IntN(8) {
			case 0:
				obj.SetLabels(nil)
			case 1:
				obj.SetAnnotations(map[string]string{"claim.atoll.dev/region": region})
			case 2:
				unstructured.RemoveNestedField(obj.Object, "spec", "acquireTime")
			}
			_, err := w.create(at, one(w, claim.FieldManager, "somebody"), obj)
			return err
		}},
		{"decision deleted", func(w *world) error { return w.delete(leaseRef(w)) }},
		{"decision edited", func(w *world) error {
			_, err := w.merge(leaseRef(w), "somebody", map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"claim.atoll.dev/uid": one[any](w, nil, "gone", "")}},
				"spec":     map[string]any{"holderIdentity": one[any](w, "eu", "us", "gone", nil)},
			})
			return err
		}},
	}
}

// judgeClaims requires that one claim of each claimed region is Bound, that the claims in Conflict
// name the peer of the Bound claim, and that the condition RegionBound of each ServiceCluster agrees
// with its claim. It skips a region with an unreadable decision, which a person has to delete.
func judgeClaims(ctx context.Context, w *world) error {
	decisions, err := w.list(ctx, "plane", leases)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"a", "b"} {
		lease := decisions[types.NamespacedName{Namespace: "kubecarrier-system", Name: name + ".loodse"}]
		if lease != nil && !readable(lease) {
			continue
		}
		if err := judgeRegion(w, name, lease); err != nil {
			errs = append(errs, fmt.Errorf("region %s: %w; decision: %s", name, err, brief(lease)))
		}
	}
	return errors.Join(errs...)
}

// readable reports whether a Lease is a decision about the region of its name.
func readable(lease *unstructured.Unstructured) bool {
	marks := lease.GetAnnotations()
	peer, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	at, _, _ := unstructured.NestedString(lease.Object, "spec", "acquireTime")
	return lease.GetLabels()[claim.DecisionLabel] == "region" && marks["claim.atoll.dev/region"] == lease.GetName() &&
		marks["claim.atoll.dev/uid"] != "" && peer != "" && at != ""
}

func judgeRegion(w *world, name string, lease *unstructured.Unstructured) error {
	holder, bound, alive, leaves := "", "", 0, false
	if lease != nil {
		holder, _, _ = unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	}
	for _, peer := range []string{"eu", "us"} {
		key := types.NamespacedName{Namespace: "loodse", Name: name}
		phase := ""
		c, err := w.get(ref{peer, resourceOf["RegionClaim"], key})
		if err == nil {
			phase, _, _ = unstructured.NestedString(c.Object, "status", "phase")
			named, _, _ := unstructured.NestedString(c.Object, "status", "holder", "peer")
			if c.GetDeletionTimestamp() == nil {
				alive++
			}
			holds := lease != nil && lease.GetAnnotations()["claim.atoll.dev/uid"] == string(c.GetUID()) && holder == peer
			leaves = leaves || holds && c.GetDeletionTimestamp() != nil
			switch {
			case c.GetDeletionTimestamp() != nil && phase != "Pending":
				return fmt.Errorf("the claim in %s is being deleted and is %s", peer, phase)
			case c.GetDeletionTimestamp() == nil && holds != (phase == "Bound"):
				return fmt.Errorf("the claim in %s is %s", peer, brief(c))
			case phase == "Conflict" && named != holder:
				return fmt.Errorf("the claim in %s names %q", peer, named)
			case phase == "Bound":
				bound = peer
			}
		}
		if cluster, err := w.get(ref{peer, resourceOf["ServiceCluster"], key}); err == nil {
			if open := conditionIn(cluster, "RegionBound")["status"] == "True"; open != (phase == "Bound") {
				return fmt.Errorf("the gate in %s is open: %t, and the claim is %q", peer, open, phase)
			}
			if c == nil {
				return fmt.Errorf("the ServiceCluster in %s has no claim", peer)
			}
		}
	}
	if alive > 0 && bound == "" && !leaves { // a claim that waits for finalizers still holds the region
		return errors.New("it is claimed, and no claim holds it")
	}
	return nil
}
