// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

var (
	accountObjects = resourceOf["Account"]
	roles          = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBindings   = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	grantNames     = []string{"kubecarrier-provider", "kubecarrier-tenant"}
)

// replicated is a central plane with Accounts and its peers, in random states.
type replicated struct {
	plane string // the server of the central plane; a peer's if the plane is one of the peers
	peers []region.PeerName

	applied map[ref]types.UID // objects without a claim that users applied in peers
	grants  map[ref]grant     // Roles and RoleBindings of other clients
}

// grant is a Role or RoleBinding of another client, with the UID of its namespace.
type grant struct {
	kept
	namespace types.UID
}

func accountsBeginning(r *rand.Rand) beginning {
	a := &replicated{plane: "plane", peers: pair, applied: map[ref]types.UID{}, grants: map[ref]grant{}}
	if r.IntN(2) == 0 {
		a.peers = append(slices.Clone(pair), "ap")
	}
	if r.IntN(4) == 0 {
		a.plane = "eu"
	}
	servers := []string{a.plane}
	b := beginning{
		loops:   []perturb.Loop{{Name: "replicator", Run: replicator(a.plane, a.peers)}},
		strokes: slices.Concat(a.strokesOfUsers(), a.strokesOfPeers(), a.strokesOfGrants()),
		quiet:   seldomSweeps + time.Minute, beats: notes,
		holds: func(_ context.Context, w *world) error { return errors.Join(w.untouched(), a.judge(w)) },
	}
	for _, peer := range a.peers {
		b.loops = append(b.loops, perturb.Loop{Name: "controller of " + string(peer), Run: accountController([]region.PeerName{peer})})
		if string(peer) != a.plane {
			servers = append(servers, string(peer))
		}
	}
	for _, server := range servers {
		b.loops = append(b.loops, finishes(server))
	}
	b.servers = members(a.peers, servers...)
	return b
}

// hold is the finalizer of another controller.
const hold = "example.com/hold"

// finishes is the loop that removes the finalizer hold from each Account of a server, 20 minutes
// after the Account's deletion.
func finishes(server string) perturb.Loop {
	return perturb.Loop{Name: clusterOf + server, Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		cluster, err := api(access, server)
		if err != nil {
			return err
		}
		return watching(ctx, cluster.Dynamic(), accountObjects, func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
			at := obj.GetDeletionTimestamp()
			left := slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == hold })
			if at == nil || len(left) == len(obj.GetFinalizers()) || !backoff.Sleep(ctx, time.Until(at.Add(20*time.Minute))) {
				return nil
			}
			patch, err := json.Marshal(inMetadata(map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": left}))
			if err != nil {
				return err
			}
			_, err = c.Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cluster"})
			return err
		})
	}}
}

func (a *replicated) apart() bool { return a.plane == "plane" }

func (a *replicated) central(w *world) ref {
	return ref{a.plane, accountObjects, types.NamespacedName{Name: one(w, "acme", "loodse")}}
}

// inPeer returns the place of an Account in a random peer.
func (a *replicated) inPeer(w *world) ref {
	return ref{string(one(w, a.peers...)), accountObjects, types.NamespacedName{Name: one(w, "acme", "loodse")}}
}

// accountVariant returns the Account that a user applies, in one of several variants.
func accountVariant(w *world, variant int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account", "spec": map[string]any{
		"roles":    [][]any{{"Tenant"}, {"Provider"}, {"Provider", "Tenant"}, {}}[variant%4],
		"metadata": map[string]any{"displayName": fmt.Sprint("variant ", variant)},
	}}}
	if variant%3 > 0 {
		_ = unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}}, "spec", "subjects")
	}
	obj.SetLabels(map[string]string{"team": one(w, "one", "two")})
	return obj
}

// users makes a user apply an Account in the central plane.
func (a *replicated) users(w *world, at ref, variant int) error {
	after, err := w.apply(at, "user", accountVariant(w, variant))
	if err == nil {
		w.keep(at, after, "team")
	}
	return err
}

// strokesOfUsers returns strokes on the Accounts of the central plane.
func (a *replicated) strokesOfUsers() []stroke {
	applied := stroke{"applied", func(w *world) error { return a.users(w, a.central(w), w.IntN(6)) }}
	return []stroke{
		applied, applied, applied, applied, applied, applied, applied, applied,
		{"spec A, B, A", func(w *world) error {
			at := a.central(w)
			for _, variant := range []int{1, 2, 1} {
				if err := a.users(w, at, variant); err != nil {
					return err
				}
				time.Sleep(time.Duration(w.IntN(3)) * time.Second)
			}
			return nil
		}},
		{"deleted", func(w *world) error { return w.delete(a.central(w)) }},
		{"deleted by force", func(w *world) error { return w.remove(a.central(w)) }},
		{"replaced", func(w *world) error {
			at := a.central(w)
			if err := w.remove(at); err != nil {
				return err
			}
			return a.users(w, at, w.IntN(6))
		}},
		{"finalizer lost", func(w *world) error {
			_, err := w.merge(a.central(w), "somebody", inMetadata(map[string]any{"finalizers": nil}))
			return err
		}},
		{"finalizer without a copy", func(w *world) error {
			_, err := w.merge(a.central(w), one(w, "somebody", account.ReplicatorFieldManager), inMetadata(map[string]any{"finalizers": []any{account.Finalizer}}))
			return err
		}},
		{"held by a finalizer of others", func(w *world) error {
			_, err := w.merge(a.central(w), "somebody", inMetadata(map[string]any{"finalizers": []any{hold, account.Finalizer}}))
			return err
		}},
		{"annotations of ours from elsewhere", func(w *world) error {
			at := a.central(w)
			obj, err := w.get(at)
			if err != nil {
				return err
			}
			_, err = w.merge(at, "somebody", inMetadata(map[string]any{"annotations": map[string]any{
				account.OriginAnnotation:                one[any](w, nil, "another", string(obj.GetUID())),
				fanoutv1alpha1.RemovalHeldAnnotation:    one[any](w, nil, "Odd", "TooMany: 9 of 9", "Unknown: no answer from us"),
				fanoutv1alpha1.ReleaseRemovalAnnotation: one[any](w, nil, "another", string(obj.GetUID())),
			}}))
			return err
		}},
		{"status from elsewhere", func(w *world) error { return oddStatus(w, a.central(w)) }},
	}
}

// oddStatus writes a status that no loop would write.
func oddStatus(w *world, at ref) error {
	obj, err := w.get(at)
	if err != nil {
		return err
	}
	_, err = w.merge(at, one(w, "somebody", account.FieldManager, account.ReplicatorFieldManager), map[string]any{"status": map[string]any{
		"observedGeneration": max(0, obj.GetGeneration()-int64(w.IntN(3))), "phase": one(w, "Ready", "Unready", "Terminating"),
		"namespace": map[string]any{"name": one(w, "acme", "other")},
		"conditions": []any{map[string]any{
			"type":   one(w, "Ready", "NamespaceReady", "RolesReady", "PresentInAllPeers", "PresentIn.eu", "PresentIn.gone", "Orphaned", "RemovalHeld", "Odd"),
			"status": one(w, "True", "False"), "reason": one(w, "Complete", "Odd", "Occupied", "NoCentralObject"), "message": "",
			"observedGeneration": obj.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}}, "status")
	return err
}

// strokesOfPeers returns strokes on the Accounts in the peers.
func (a *replicated) strokesOfPeers() []stroke {
	return []stroke{
		{"object without claim in a peer", func(w *world) error {
			at := a.inPeer(w)
			obj := accountVariant(w, w.IntN(6))
			if w.IntN(3) == 0 {
				obj.SetAnnotations(map[string]string{account.OriginAnnotation: a.originOf(w, at)})
			}
			after, err := w.create(at, "somebody", obj)
			if err == nil && at.server != a.plane {
				w.keep(at, after, "team")
				a.applied[at] = after.GetUID()
			}
			return err
		}},
		{"added by fan-out without a central object", func(w *world) error {
			at, obj := a.inPeer(w), accountVariant(w, w.IntN(6))
			obj.SetName(at.Name)
			err := byHand(w.servers, a.peers, fanout.Options{Kinds: account.Kinds()}, func(ctx context.Context, c *fanout.Coordinator) error {
				_, err := c.Add(ctx, obj, fanout.AddOptions{Target: region.PeerName(at.server)})
				return err
			})
			if err != nil {
				return fmt.Errorf("%w: %w", errNoEffect, err)
			}
			return nil
		}},
		{"half-written claim", func(w *world) error { return a.halfWritten(w, a.inPeer(w)) }},
		{"copy edited", func(w *world) error {
			_, err := w.merge(a.inPeer(w), one(w, "somebody", "kubectl", account.ReplicatorFieldManager), map[string]any{"spec": map[string]any{
				"metadata": map[string]any{"displayName": "theirs"},
			}})
			return err
		}},
		{"copy deleted", func(w *world) error { return w.delete(a.inPeer(w)) }},
		{"copy deleted by force", func(w *world) error { return w.remove(a.inPeer(w)) }},
		{"copy held by a finalizer of others", func(w *world) error {
			at := a.inPeer(w)
			obj, err := w.get(at)
			if err != nil {
				return err
			}
			_, err = w.merge(at, "somebody", inMetadata(map[string]any{"finalizers": append(obj.GetFinalizers(), hold)}))
			return err
		}},
		{"finalizers of a copy lost", func(w *world) error {
			_, err := w.merge(a.inPeer(w), "somebody", inMetadata(map[string]any{"finalizers": nil}))
			return err
		}},
		{"origin lost", func(w *world) error {
			at := a.inPeer(w)
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"annotations": map[string]any{account.OriginAnnotation: one[any](w, nil, "", "another", a.originOf(w, at))}}))
			return err
		}},
		{"labels of a copy edited", func(w *world) error {
			_, err := w.merge(a.inPeer(w), "somebody", inMetadata(map[string]any{"labels": map[string]any{"team": one[any](w, nil, "theirs")}}))
			return err
		}},
		{"status of a copy from elsewhere", func(w *world) error { return oddStatus(w, a.inPeer(w)) }},
		{"RegionClaim in the namespace", func(w *world) error {
			at := a.inPeer(w)
			at = ref{at.server, resourceOf["RegionClaim"], types.NamespacedName{Namespace: at.Name, Name: "r"}}
			_, err := w.apply(at, "user", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubecarrier.io/v1alpha1", "kind": "RegionClaim", "spec": map[string]any{}}})
			return err
		}},
		{"RegionClaim deleted", func(w *world) error {
			at := a.inPeer(w)
			return w.delete(ref{at.server, resourceOf["RegionClaim"], types.NamespacedName{Namespace: at.Name, Name: "r"}})
		}},
	}
}

// originOf returns the UID of the central object for a copy.
func (a *replicated) originOf(w *world, at ref) string {
	obj, err := w.get(ref{a.plane, accountObjects, at.NamespacedName})
	if err != nil {
		return "gone"
	}
	return string(obj.GetUID())
}

// halfWritten creates a reservation, like a Coordinator that crashes right after this write. In one
// of four cases it also makes the reservation Active, even if its home does not exist.
func (a *replicated) halfWritten(w *world, at ref) error {
	obj := accountVariant(w, w.IntN(6))
	if w.IntN(2) == 0 {
		obj.SetAnnotations(map[string]string{account.OriginAnnotation: a.originOf(w, at)})
	}
	claim := map[string]any{
		"operation": one(w, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "1"), "coordinator": "a program", "digest": one(w, "", "abc"), "start": "1999-01-01T00:00:00.000000Z",
		"role": "Primary", "peer": at.server, "target": at.server,
	}
	state := map[string]any{"stage": "Reserved", "claim": claim}
	if primary := one(w, a.peers...); string(primary) != at.server {
		uid := "gone"
		if o, err := w.get(ref{string(primary), accountObjects, at.NamespacedName}); err == nil && w.IntN(2) == 0 {
			uid = string(o.GetUID())
		}
		claim["role"], claim["target"], claim["primary"] = "Secondary", string(primary), map[string]any{"peer": string(primary), "uid": uid}
		state["home"] = map[string]any{"peer": string(primary), "uid": uid, "term": int64(1)}
	}
	if err := unstructured.SetNestedMap(obj.Object, state, "spec", "fanout"); err != nil {
		return err
	}
	if _, err := w.create(at, "atoll-fanout", obj); err != nil || w.IntN(4) > 0 {
		return err
	}
	_, err := w.merge(at, "atoll-fanout", map[string]any{"spec": map[string]any{"fanout": map[string]any{
		"stage": "Active", "revision": map[string]any{"number": int64(1 + w.IntN(3)), "operation": claim["operation"], "digest": "abc"},
	}}})
	return err
}

// strokesOfGrants returns strokes on the namespaces, Roles and RoleBindings of the Accounts.
func (a *replicated) strokesOfGrants() []stroke {
	namespace := func(w *world) ref {
		at := a.inPeer(w)
		at.gvr = namespaces
		return at
	}
	grantRef := func(w *world) ref {
		return ref{string(one(w, a.peers...)), one(w, roles, roleBindings), types.NamespacedName{Namespace: one(w, "acme", "loodse"), Name: one(w, grantNames...)}}
	}
	return []stroke{
		{"foreign namespace", func(w *world) error {
			at := namespace(w)
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
			obj.SetLabels(map[string]string{account.Label: one(w, "other", "")})
			if w.IntN(2) == 0 {
				obj.SetLabels(nil)
			}
			after, err := w.create(at, "somebody", obj)
			if err == nil {
				w.keep(at, after, account.Label)
			}
			return err
		}},
		{"namespace deleted", func(w *world) error { return w.delete(namespace(w)) }},
		{"namespace held by a finalizer of others", func(w *world) error {
			_, err := w.merge(namespace(w), "somebody", inMetadata(map[string]any{"finalizers": []any{hold}}))
			return err
		}},
		{"label of a namespace lost", func(w *world) error {
			at := namespace(w)
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"labels": map[string]any{account.Label: one[any](w, nil, "other", at.Name)}}))
			return err
		}},
		{"foreign Role or RoleBinding", func(w *world) error { return a.foreignGrant(w, grantRef(w)) }},
		{"Role or RoleBinding edited", func(w *world) error {
			at := grantRef(w)
			patch := map[string]any{"rules": []any{}}
			if at.gvr == roleBindings {
				patch = map[string]any{"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}}}
			}
			return a.ends(w, at, func() error { _, err := w.merge(at, one(w, "somebody", account.FieldManager), patch); return err })
		}},
		{"Role or RoleBinding deleted", func(w *world) error {
			at := grantRef(w)
			return a.ends(w, at, func() error { return w.delete(at) })
		}},
		{"labels of a Role or RoleBinding lost", func(w *world) error {
			at := grantRef(w)
			return a.ends(w, at, func() error {
				_, err := w.merge(at, "somebody", inMetadata(map[string]any{"labels": map[string]any{
					account.Label: one[any](w, nil, "other", at.Namespace), account.RoleLabel: one[any](w, nil, "Provider", "Tenant"),
				}}))
				return err
			})
		}},
	}
}

// ends writes a Role or RoleBinding as a user who decides about it: the loops need not keep the
// previous one.
func (a *replicated) ends(w *world, at ref, write func() error) error {
	if _, err := w.get(at); err != nil {
		return err
	}
	delete(a.grants, at)
	return write()
}

// foreignGrant creates a Role or RoleBinding of another client. It has at most one of the two
// labels of an Account's Roles.
func (a *replicated) foreignGrant(w *world, at ref) error {
	ns, err := w.get(ref{at.server, namespaces, types.NamespacedName{Name: at.Namespace}})
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []any{}}}
	if at.gvr == roleBindings {
		obj.Object = map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": one(w, "theirs", at.Name)}}
	}
	if labels := one(w, nil, map[string]string{account.Label: "other"}, map[string]string{account.RoleLabel: "Tenant"}); labels != nil {
		obj.SetLabels(labels)
	}
	after, err := w.create(at, "somebody", obj)
	if err != nil || ns.GetDeletionTimestamp() != nil {
		return err
	}
	a.grants[at] = grant{kept{uid: after.GetUID(), content: contentOf(after)}, ns.GetUID()}
	return nil
}
