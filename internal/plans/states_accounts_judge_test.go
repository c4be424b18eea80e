// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/tracker"
)

// judge requires the end state that the documentation of package account promises.
func (a *replicated) judge(w *world) error {
	errs := []error{a.judgeOthers(w)}
	for _, name := range []string{"acme", "loodse"} {
		key := types.NamespacedName{Name: name}
		end := accountEnd{plane: a.plane, apart: a.apart(), copies: map[string]*unstructured.Unstructured{}}
		var err error
		if end.central, err = lookUp(w, ref{a.plane, accountObjects, key}); err != nil {
			return err
		}
		for _, peer := range a.peers {
			if end.copies[string(peer)], err = lookUp(w, ref{string(peer), accountObjects, key}); err != nil {
				return err
			}
			if err := judgeGrants(w, string(peer), end.copies[string(peer)]); err != nil {
				errs = append(errs, fmt.Errorf("%s in %s: %w\n  %s", name, peer, err, brief(end.copies[string(peer)])))
			}
		}
		if err := end.judge(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w%s", name, err, end))
		}
	}
	return errors.Join(errs...)
}

// lookUp returns an object; nil if it does not exist.
func lookUp(w *world, at ref) (*unstructured.Unstructured, error) {
	obj, err := w.get(at)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// judgeOthers requires that the objects that users applied to peers without a claim have no claim
// now. It also requires that Roles and RoleBindings of other clients are unchanged, as long as their
// namespace exists.
func (a *replicated) judgeOthers(w *world) error {
	var errs []error
	for at, uid := range a.applied {
		obj, err := lookUp(w, at)
		if err != nil {
			return err
		}
		if obj != nil && obj.GetUID() == uid && stageIn(obj) != "" {
			errs = append(errs, fmt.Errorf("%s was applied without a claim, and has one: %s", at, brief(obj)))
		}
	}
	for at, g := range a.grants {
		ns, err := lookUp(w, ref{at.server, namespaces, types.NamespacedName{Name: at.Namespace}})
		if err != nil {
			return err
		}
		if ns == nil || ns.GetUID() != g.namespace || ns.GetDeletionTimestamp() != nil {
			continue
		}
		obj, err := lookUp(w, at)
		switch {
		case err != nil:
			return err
		case obj == nil || obj.GetUID() != g.uid:
			errs = append(errs, fmt.Errorf("%s is another client's, and is gone", at))
		case !reflect.DeepEqual(contentOf(obj), g.content):
			errs = append(errs, fmt.Errorf("%s is another client's, and was changed to %s", at, brief(obj)))
		}
	}
	return errors.Join(errs...)
}

func stageIn(obj *unstructured.Unstructured) string {
	stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
	return stage
}

// accountEnd is the end state of one Account.
type accountEnd struct {
	plane   string
	apart   bool // the plane is no peer
	central *unstructured.Unstructured
	copies  map[string]*unstructured.Unstructured // by peer; nil for none
}

func (e accountEnd) String() string {
	text := "\n  central: " + brief(e.central)
	for _, peer := range slices.Sorted(maps.Keys(e.copies)) {
		text += "\n  " + peer + ": " + brief(e.copies[peer])
	}
	return text
}

func (e accountEnd) judge() error {
	switch {
	case e.central == nil:
		return e.judgeOrphans()
	case e.central.GetDeletionTimestamp() != nil:
		return e.judgeRemoval()
	}
	if e.keptApart() {
		e.apart, e.copies = true, maps.Clone(e.copies)
		delete(e.copies, e.plane)
	}
	var lacking, unready []string
	for _, peer := range slices.Sorted(maps.Keys(e.copies)) {
		switch c := e.copies[peer]; {
		case !e.ours(c):
			lacking = append(lacking, peer)
		case !readyIn(c):
			unready = append(unready, peer)
		}
	}
	ready := conditionIn(e.central, "Ready")
	if ready == nil || ready["observedGeneration"] != e.central.GetGeneration() {
		return fmt.Errorf("its condition is not of this generation: %v", ready)
	}
	switch {
	case len(lacking) > 0:
		return e.judgeLacking(lacking, ready)
	case len(unready) > 0:
		return e.judgeUnready(unready, ready)
	case ready["status"] != "True" || ready["reason"] != "Complete":
		return fmt.Errorf("all peers have it, and Ready is %v", ready)
	}
	return nil
}

// keptApart reports whether the plane is a peer that does not count: the home of the Account was made
// for the central object before the plane became a peer, as the origin of the home shows.
func (e accountEnd) keptApart() bool {
	if e.apart || stageIn(e.central) != "" {
		return false
	}
	for peer, c := range e.copies {
		if peer != e.plane && c != nil && isHome(c) && c.GetAnnotations()[account.OriginAnnotation] == string(e.central.GetUID()) {
			return true
		}
	}
	return false
}

// ours reports whether an object in a peer is in effect with the content of the central object.
func (e accountEnd) ours(c *unstructured.Unstructured) bool {
	switch {
	case !inEffect(c):
		return false
	case e.apart && isHome(c) && c.GetAnnotations()[account.OriginAnnotation] != string(e.central.GetUID()):
		return false
	}
	return e.same(c)
}

// same reports whether the object in a peer has the content of the central object. Of a replica it
// compares only the spec: labels and annotations that another client edits stay until the next
// revision, see doc.go of package account.
func (e accountEnd) same(c *unstructured.Unstructured) bool {
	if !isHome(c) {
		return reflect.DeepEqual(contentOf(e.central)["spec"], contentOf(c)["spec"])
	}
	return sameContent(e.central, c)
}

// inEffect reports whether an object in a peer is Active. A home whose deletion only requests a
// removal stays in effect.
func inEffect(c *unstructured.Unstructured) bool {
	return c != nil && stageIn(c) == "Active" &&
		(c.GetDeletionTimestamp() == nil || slices.Contains(c.GetFinalizers(), fanoutv1alpha1.PrimaryFinalizer))
}

// isHome reports whether an object in a peer is the home. No home moves to another peer here, so the
// home is the object with the role Primary.
func isHome(c *unstructured.Unstructured) bool {
	role, _, _ := unstructured.NestedString(c.Object, "spec", "fanout", "claim", "role")
	return role == "Primary"
}

// sameContent reports whether two Accounts have the same spec, labels and annotations. It ignores the
// labels and annotations of tools that track objects, the origin annotation, and those that begin
// with fanout.atoll.dev/.
func sameContent(x, y *unstructured.Unstructured) bool {
	marks := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		maps.DeleteFunc(all, func(key, _ string) bool {
			return tracker.Is(key) || key == account.OriginAnnotation || strings.HasPrefix(key, "fanout.atoll.dev/")
		})
		return all
	}
	return reflect.DeepEqual(contentOf(x)["spec"], contentOf(y)["spec"]) &&
		maps.Equal(marks(x.GetLabels()), marks(y.GetLabels())) && maps.Equal(marks(x.GetAnnotations()), marks(y.GetAnnotations()))
}

// readyIn reports whether the status of an Account in a peer says that its objects are complete.
func readyIn(c *unstructured.Unstructured) bool {
	for _, name := range []string{account.ConditionNamespaceReady, account.ConditionRolesReady} {
		if conditionIn(c, name)["status"] != "True" {
			return false
		}
	}
	return true
}

// obstacle returns the reason why the loops must not change the object in a peer. It returns "" if
// they may change it.
func (e accountEnd) obstacle(peer string) string {
	c := e.copies[peer]
	switch {
	case c == nil:
		return ""
	case e.homeless(c):
		return "its home is lost"
	case !e.apart && peer == e.plane:
		return ""
	case stageIn(c) == "":
		return "it has no claim"
	case e.apart && c.GetAnnotations()[account.OriginAnnotation] != string(e.central.GetUID()) && !sameContent(e.central, c):
		return "it is of others"
	case !e.apart && stageIn(e.central) == "":
		return "it holds the name" // an object is adopted only if no other peer has its name
	}
	return ""
}

// homeless reports whether the home that the object in a peer names does not exist: a person
// decides about such an object.
func (e accountEnd) homeless(c *unstructured.Unstructured) bool {
	peer, _, _ := unstructured.NestedString(c.Object, "spec", "fanout", "claim", "primary", "peer")
	uid, _, _ := unstructured.NestedString(c.Object, "spec", "fanout", "claim", "primary", "uid")
	if home, ok, _ := unstructured.NestedMap(c.Object, "spec", "fanout", "home"); ok {
		peer, uid = fmt.Sprint(home["peer"]), fmt.Sprint(home["uid"])
	}
	return peer != "" && (e.copies[peer] == nil || string(e.copies[peer].GetUID()) != uid)
}

func (e accountEnd) obstacles() string {
	var found []string
	for _, peer := range slices.Sorted(maps.Keys(e.copies)) {
		if o := e.obstacle(peer); o != "" {
			found = append(found, peer+": "+o)
		}
	}
	return strings.Join(found, ", ")
}

// judgeLacking requires that peers lack the Account only because of an obstacle, and that the
// conditions name the peers.
func (e accountEnd) judgeLacking(lacking []string, ready map[string]any) error {
	if e.obstacles() == "" {
		return fmt.Errorf("nothing prevents it, and it is not in %v: %v", lacking, ready)
	}
	if ready["status"] != "False" || !slices.Contains([]any{"Conflict", "PeersMissing"}, ready["reason"]) {
		return fmt.Errorf("it is not in %v (%s), and Ready is %v", lacking, e.obstacles(), ready)
	}
	for _, peer := range lacking {
		c := conditionIn(e.central, "PresentIn."+peer)
		if c["status"] != "False" || !slices.Contains([]any{"Missing", "Behind", "Edited", "Conflict", "Removing"}, c["reason"]) {
			return fmt.Errorf("it is not in %s (%s), and the condition is %v", peer, e.obstacles(), c)
		}
	}
	return nil
}

// judgeUnready requires that the condition Ready of the central object has the reason PeersNotReady,
// and that the condition of each peer whose Account is not ready has the reason NotReady.
func (e accountEnd) judgeUnready(unready []string, ready map[string]any) error {
	if ready["status"] != "False" || ready["reason"] != "PeersNotReady" {
		return fmt.Errorf("it is not ready in %v, and Ready is %v", unready, ready)
	}
	for _, peer := range unready {
		if c := conditionIn(e.central, "PresentIn."+peer); c["status"] != "True" || c["reason"] != "NotReady" {
			return fmt.Errorf("it is not ready in %s, and the condition is %v", peer, c)
		}
	}
	return nil
}

// judgeOrphans requires that the condition Orphaned of a home is True if its central object is
// missing.
func (e accountEnd) judgeOrphans() error {
	for peer, c := range e.copies {
		if c == nil || stageIn(c) != "Active" || c.GetAnnotations()[account.OriginAnnotation] == "" || !isHome(c) {
			continue
		}
		if o := conditionIn(c, "Orphaned"); o["status"] != "True" {
			return fmt.Errorf("its central object is missing, and Orphaned in %s is %v", peer, o)
		}
	}
	return nil
}

// judgeRemoval requires that an Account that is being deleted is in no peer, unless its removal is
// held or an obstacle prevents it.
func (e accountEnd) judgeRemoval() error {
	held := conditionIn(e.central, "RemovalHeld")
	var left []string
	for _, peer := range slices.Sorted(maps.Keys(e.copies)) {
		c := e.copies[peer]
		if c == nil || e.apart && c.GetAnnotations()[account.OriginAnnotation] != string(e.central.GetUID()) {
			continue
		}
		left = append(left, peer)
		if held != nil && stageIn(c) != "Active" {
			return fmt.Errorf("its removal is held (%v), and in %s it is %s", held, peer, stageIn(c))
		}
	}
	switch {
	case held != nil:
		return nil
	case len(left) > 0 && e.obstacles() == "":
		return fmt.Errorf("it is deleted, and still in %v", left)
	case len(left) == 0 && e.apart && slices.Contains(e.central.GetFinalizers(), account.Finalizer):
		return errors.New("it is in no peer, and has our finalizer")
	}
	return nil
}

// judgeGrants requires that an Account in effect has its namespace, Roles and RoleBindings in a
// peer, or that a condition names the conflict.
func judgeGrants(w *world, peer string, c *unstructured.Unstructured) error {
	if !inEffect(c) {
		return nil
	}
	if usable, err := judgeNamespace(w, peer, c); !usable || err != nil {
		return err
	}
	conflicts, err := conflictsIn(w, peer, c)
	if err != nil {
		return err
	}
	condition := conditionIn(c, account.ConditionRolesReady)
	message, _ := condition["message"].(string)
	if len(conflicts) == 0 && condition["status"] != "True" {
		return fmt.Errorf("its Roles are complete, and the condition is %v", condition)
	}
	for _, conflict := range conflicts {
		if condition["reason"] != "RolesConflict" || !strings.Contains(message, conflict) {
			return fmt.Errorf("%s is another client's, and the condition is %v", conflict, condition)
		}
	}
	return nil
}

// judgeNamespace requires that the Account's condition reports the state of its namespace.
func judgeNamespace(w *world, peer string, c *unstructured.Unstructured) (usable bool, err error) {
	ns, err := lookUp(w, ref{peer, namespaces, types.NamespacedName{Name: c.GetName()}})
	if err != nil {
		return false, err
	}
	condition := conditionIn(c, account.ConditionNamespaceReady)
	want := "Owned"
	switch {
	case ns == nil:
		return false, fmt.Errorf("it has no namespace: %v", condition)
	case ns.GetDeletionTimestamp() != nil:
		want = "Terminating"
	case ns.GetLabels()[account.Label] != c.GetName():
		want = "Shared"
	}
	if condition["reason"] != want {
		return false, fmt.Errorf("its namespace is %s, and the condition is %v", want, condition)
	}
	return want != "Terminating", nil
}

// conflictsIn returns the Roles and RoleBindings of other clients whose names the Account needs.
// Its error names an object of the Account that is wrong.
func conflictsIn(w *world, peer string, c *unstructured.Unstructured) (conflicts []string, err error) {
	var spec v1alpha1.AccountSpec
	fields, _ := contentOf(c)["spec"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		return nil, err
	}
	for _, role := range []v1alpha1.AccountRole{v1alpha1.AccountProvider, v1alpha1.AccountTenant} {
		for _, gvr := range []schema.GroupVersionResource{roles, roleBindings} {
			name := account.RoleName(role)
			obj, err := lookUp(w, ref{peer, gvr, types.NamespacedName{Namespace: c.GetName(), Name: name}})
			if err != nil {
				return nil, err
			}
			needed := slices.Contains(spec.Roles, role) && (gvr == roles || len(spec.Subjects) > 0)
			theirs, err := judgeGrant(obj, c.GetName(), role, needed, spec)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", gvr.Resource, name, err)
			}
			if theirs {
				conflicts = append(conflicts, strings.ToLower(obj.GetKind())+" "+name)
			}
		}
	}
	return conflicts, nil
}

// judgeGrant requires that a Role or RoleBinding, nil if it does not exist, is as the Account
// demands. theirs is true if it is another client's, and the Account needs its name.
func judgeGrant(obj *unstructured.Unstructured, name string, role v1alpha1.AccountRole, needed bool, spec v1alpha1.AccountSpec) (theirs bool, err error) {
	labelled := obj != nil && obj.GetLabels()[account.Label] == name
	complete := labelled && obj.GetLabels()[account.RoleLabel] == string(role)
	switch {
	case needed && obj == nil:
		return false, errors.New("it is missing")
	case needed && !labelled:
		return true, nil
	case needed && !complete:
		return false, fmt.Errorf("it has the labels %v", obj.GetLabels())
	case needed:
		return false, judgeContent(obj, role, spec)
	case complete:
		return false, errors.New("the Account does not need it, and it stays")
	}
	return false, nil
}

// judgeContent requires that a Role has exactly the rules of the Account's role. Of a RoleBinding it
// requires that it refers to that Role, and that its subjects are exactly those of the Account.
func judgeContent(obj *unstructured.Unstructured, role v1alpha1.AccountRole, spec v1alpha1.AccountSpec) error {
	if obj.GetKind() == "Role" {
		var r rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &r); err != nil {
			return err
		}
		if !reflect.DeepEqual(r.Rules, account.DefaultRights()[role]) {
			return fmt.Errorf("it has the rules %v", r.Rules)
		}
		return nil
	}
	var b rbacv1.RoleBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &b); err != nil {
		return err
	}
	subjects := slices.Clone(spec.Subjects)
	for i := range subjects { // as an API server completes them
		if s := &subjects[i]; s.APIGroup == "" && s.Kind != rbacv1.ServiceAccountKind {
			s.APIGroup = rbacv1.GroupName
		}
	}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account.RoleName(role)}
	if b.RoleRef != to || !reflect.DeepEqual(b.Subjects, subjects) {
		return fmt.Errorf("it binds %v to %v", b.Subjects, b.RoleRef)
	}
	return nil
}
