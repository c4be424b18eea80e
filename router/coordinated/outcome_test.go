// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/apiserver"
)

// steps lets a test act before or after a command of the protocol.
type steps struct {
	mu sync.Mutex
	on func(fanout.StepEvent) bool // returns true when it has acted
}

func (s *steps) observer() *fanout.Observer {
	return &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.on != nil && s.on(e) {
			s.on = nil
		}
	}}
}

func (s *steps) next(on func(fanout.StepEvent) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// The reply to a commit is lost, and then its region. The answer is a 504. The same request, repeated when the region
// answers again, ends in one committed object, or in its removal.
func TestInDoubt(t *testing.T) {
	label := `{"metadata":{"labels":{"of":"this"}},"spec":{"roles":["Provider"]}}`
	for name, c := range map[string]struct {
		request
		applied  bool // the commit was applied
		existed  bool
		codes    []int // of the repetition
		finished func(t *testing.T, s *scene)
	}{
		"create, applied":     {request{http.MethodPost, "/regions/eu.loodse" + accountsPath, jsonType, newAcme}, true, false, []int{http.StatusConflict}, exist},
		"create, not applied": {request{http.MethodPost, "/regions/eu.loodse" + accountsPath, jsonType, newAcme}, false, false, []int{http.StatusCreated}, exist},
		"apply, applied":      {request{http.MethodPatch, "/regions/eu.loodse" + accountsPath + "/acme?fieldManager=x", applyType, newAcme}, true, false, []int{http.StatusOK}, exist},
		"apply, not applied":  {request{http.MethodPatch, "/regions/eu.loodse" + accountsPath + "/acme?fieldManager=x", applyType, newAcme}, false, false, []int{http.StatusOK}, exist},
		"patch, applied":      {request{http.MethodPatch, "/regions/*" + accountsPath + "/acme", mergeType, label}, true, true, []int{http.StatusOK}, provider},
		"patch, not applied":  {request{http.MethodPatch, "/regions/*" + accountsPath + "/acme", mergeType, label}, false, true, []int{http.StatusOK, http.StatusConflict}, provider},
		"delete, applied":     {request{http.MethodDelete, "/regions/eu.loodse" + accountsPath + "/acme", "", ""}, true, true, []int{http.StatusOK, http.StatusNotFound}, gone},
		"delete, not applied": {request{http.MethodDelete, "/regions/eu.loodse" + accountsPath + "/acme", "", ""}, false, true, []int{http.StatusOK, http.StatusNotFound}, gone},
	} {
		t.Run(name, func(t *testing.T) {
			var at steps
			s := newScene(t, fanout.Options{Observer: at.observer(), Cleanup: 200 * time.Millisecond})
			if c.existed {
				s.acme(t)
			}
			server := s.ring.Server("peer-a")
			cut := regiontest.Crash(func() { s.ring.Partition("peer-a", true) })
			at.next(func(e fanout.StepEvent) bool {
				if e.Done || e.Verb != "put" || e.Peer != "peer-a" || e.Stage != "Active" && e.Stage != "Removing" { // no commit
					return false
				}
				if c.applied {
					server.Inject(regiontest.Fault{Verb: "update", Resource: accounts.GroupResource(), Do: regiontest.DropReply()})
					server.Inject(regiontest.Fault{Verb: "get", Resource: accounts.GroupResource(), Name: "acme", Do: cut})
				} else {
					server.Inject(regiontest.Fault{Verb: "update", Resource: accounts.GroupResource(), Do: cut})
				}
				return true
			})
			code, answer := s.send(t, c.method, c.path, c.media, c.body)
			require.Equal(t, http.StatusGatewayTimeout, code, answer)
			require.Contains(t, answer, "is not known yet: the regions settle it, and this request may be repeated; no answer from region eu.loodse")
			require.Contains(t, answer, `"reason":"Timeout"`)
			require.NotContains(t, answer, "peer-")
			s.ring.Partition("peer-a", false)
			code, answer = s.send(t, c.method, c.path, c.media, c.body)
			require.Contains(t, c.codes, code, answer)
			_, err := s.coordinator.Recover(t.Context())
			require.NoError(t, err)
			c.finished(t, s)
		})
	}
}

func exist(t *testing.T, s *scene)    { inEffect(t, s, "Tenant") }
func provider(t *testing.T, s *scene) { inEffect(t, s, "Provider") }

func inEffect(t *testing.T, s *scene, role string) {
	t.Helper()
	homes := 0
	for peer := range peers {
		o := s.get(t, peer, accounts, "acme")
		require.NotNil(t, o, peer)
		require.Equal(t, "Active", stage(o), peer)
		require.Equal(t, []string{role}, roles(o), peer)
		if r, _, _ := unstructured.NestedString(o.Object, "spec", "fanout", "claim", "role"); r == "Primary" {
			homes++
		}
	}
	require.Equal(t, 1, homes)
}

func gone(t *testing.T, s *scene) {
	t.Helper()
	for peer := range peers {
		require.Nil(t, s.get(t, peer, accounts, "acme"), peer)
	}
}

// A rival changes the object after the dry run. The write that was computed from the older object is a conflict, and
// the rival's change stays.
func TestRivals(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, s *scene) error{
		"update": func(t *testing.T, s *scene) error {
			o, err := s.in(t, "eu.loodse", accounts).Get(t.Context(), "acme", metav1.GetOptions{})
			require.NoError(t, err)
			o.SetLabels(map[string]string{"of": "alice"})
			_, err = s.in(t, "eu.loodse", accounts).Update(t.Context(), o, metav1.UpdateOptions{})
			return err
		},
		"patch": func(t *testing.T, s *scene) error {
			_, err := s.in(t, "us.loodse", accounts).Patch(t.Context(), "acme", types.MergePatchType, []byte(`{"metadata":{"labels":{"of":"alice"}}}`), metav1.PatchOptions{})
			return err
		},
		"delete of a version": func(t *testing.T, s *scene) error {
			rv := s.get(t, "peer-b", accounts, "acme").GetResourceVersion()
			return s.in(t, "us.loodse", accounts).Delete(t.Context(), "acme", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &rv}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var at steps
			s := newScene(t, fanout.Options{Observer: at.observer()})
			s.acme(t)
			at.next(func(e fanout.StepEvent) bool {
				if e.Verb != "begin" {
					return false
				}
				o, err := s.at(t, "peer-a", accounts).Patch(t.Context(), "acme", types.MergePatchType, []byte(toProvider), metav1.PatchOptions{})
				require.NoError(t, err)
				require.Equal(t, []string{"Provider"}, roles(o))
				return true
			})
			err := do(t, s)
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.NotContains(t, err.Error(), "peer-")
			o := s.get(t, "peer-a", accounts, "acme")
			require.Equal(t, []string{"Provider"}, roles(o))
			require.Empty(t, o.GetLabels())
		})
	}
}

// Preconditions of a delete are those of the region's object.
func TestPreconditions(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	other, old := types.UID("of another object"), "1"
	for _, where := range []string{"eu.loodse", "us.loodse"} {
		s.reset(t)
		for _, p := range []metav1.Preconditions{{UID: &other}, {ResourceVersion: &old}} {
			err := s.in(t, where, accounts).Delete(t.Context(), "acme", metav1.DeleteOptions{Preconditions: &p})
			require.True(t, apierrors.IsConflict(err), "%v", err)
		}
		s.unwritten(t)
	}
	o, err := s.in(t, "*", accounts).Get(t.Context(), "acme@us.loodse", metav1.GetOptions{})
	require.NoError(t, err)
	uid, rv := o.GetUID(), o.GetResourceVersion()
	require.NoError(t, s.in(t, "*", accounts).Delete(t.Context(), "acme", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rv}}))
	gone(t, s)
}

// An Account whose namespace holds an object is not removed, and the answer names the object and its region. A
// ServiceCluster without an Account is not created. A removal that waits for a finalizer is a 202.
func TestOwners(t *testing.T) {
	s := newScene(t, fanout.Options{})
	code, answer := s.send(t, http.MethodPost, "/regions/us.loodse"+clustersPath, jsonType, newDB)
	require.Equal(t, http.StatusNotFound, code, answer) // there is no namespace
	s.acme(t)
	client := s.in(t, "us.loodse", clusters)
	_, err := client.Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.coordinator.Wait(t.Context()))
	s.reset(t)
	code, answer = s.send(t, http.MethodDelete, "/regions/eu.loodse"+accountsPath+"/acme", "", "")
	require.Equal(t, http.StatusConflict, code, answer)
	require.Contains(t, answer, "serviceclusters db in region us.loodse")
	require.NotContains(t, answer, "peer-")
	s.unwritten(t)

	o, err := client.Get(t.Context(), "db", metav1.GetOptions{})
	require.NoError(t, err)
	o.SetFinalizers(append(o.GetFinalizers(), "example.com/x"))
	_, err = client.Update(t.Context(), o, metav1.UpdateOptions{})
	require.NoError(t, err)
	code, answer = s.send(t, http.MethodDelete, "/regions/*"+clustersPath+"/db", "", "")
	require.Equal(t, http.StatusAccepted, code, answer)
	require.NotNil(t, s.get(t, "peer-a", clusters, "db"), "the name is held")
	_, err = client.Patch(t.Context(), "db", types.MergePatchType, []byte(`{"metadata":{"finalizers":["fanout.atoll.dev/primary"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	code, answer = s.send(t, http.MethodDelete, "/regions/*"+clustersPath+"/db", "", "")
	require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, code, answer)
	for peer := range peers {
		require.Nil(t, s.get(t, peer, clusters, "db"), peer)
	}
	require.NoError(t, s.in(t, "*", accounts).Delete(t.Context(), "acme", metav1.DeleteOptions{}))
}

// A removal removed one object, and found another one of the name because of a restore. The answer names its region.
func TestAnotherObjectOfTheName(t *testing.T) {
	err := failure(t.Context(), fmt.Errorf("remove: %w: %w", fanout.ErrReturned, &fanout.HeldError{Holder: "peer-a", Operation: "x", Stage: "Configured"}))
	var failed *apiserver.FanoutError
	require.ErrorAs(t, err, &failed)
	require.EqualValues(t, http.StatusConflict, failed.Code)
	require.Equal(t, metav1.StatusReasonConflict, failed.Reason)
	text := failed.Text(func(region.PeerName) string { return "region eu.loodse" })
	require.Contains(t, text, "an object of this name was removed, and region eu.loodse has another one")
}

// Region us was restored, and has a removed object again whose name another object got meanwhile, in region eu. Nothing
// shows the restore yet. A delete, and a change that names no region, are conflicts that name both regions. A change in
// region eu is not affected, since each region works when another one does not.
func TestARestoredRegionHasARemovedObject(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	restored, other, all := s.in(t, "us.loodse", clusters), s.in(t, "eu.loodse", clusters), s.in(t, "*", clusters)
	older, err := restored.Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.coordinator.Wait(t.Context()))
	saved := s.ring.Server("peer-b").Save()
	require.NoError(t, restored.Delete(t.Context(), "db", metav1.DeleteOptions{}))
	_, err = other.Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.coordinator.Wait(t.Context()))
	require.NoError(t, s.ring.Server("peer-b").Load(saved))
	s.reset(t)

	uid, patch := older.GetUID(), []byte(`{"metadata":{"labels":{"of":"patch"}}}`)
	refused := map[string]func() error{
		"delete by UID": func() error {
			return restored.Delete(t.Context(), "db", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		},
		"delete in the other region": func() error { return other.Delete(t.Context(), "db", metav1.DeleteOptions{}) },
		"delete in no region":        func() error { return all.Delete(t.Context(), "db", metav1.DeleteOptions{}) },
		"dry run":                    func() error { return restored.Delete(t.Context(), "db", metav1.DeleteOptions{DryRun: []string{"All"}}) },
		"patch in no region": func() error {
			_, err := all.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
		"patch of the guard": func() error {
			_, err := s.in(t, "jp.loodse", clusters).Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
	for name, do := range refused {
		err := do()
		require.True(t, apierrors.IsConflict(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "region eu.loodse, region us.loodse each have an object of this name", name)
	}
	s.unwritten(t)

	_, err = other.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, "patch", s.get(t, "peer-a", clusters, "db").GetLabels()["of"])
	require.Empty(t, s.get(t, "peer-b", clusters, "db").GetLabels())
}

// Region eu was restored from a state before an Account moved its home to region us. A change of the Account is a
// conflict, and it is not known which region's content is the newer one.
func TestARestoredRegionHasAnOlderHome(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	require.NoError(t, s.coordinator.Wait(t.Context()))
	saved := s.ring.Server("peer-a").Save()
	_, err := s.coordinator.Move(t.Context(), account.Kind().GroupKind(), types.NamespacedName{Name: "acme"}, "peer-b", fanout.MoveOptions{})
	require.NoError(t, err)
	require.NoError(t, s.ring.Server("peer-a").Load(saved))
	s.reset(t)
	for _, where := range []string{"eu.loodse", "us.loodse", "jp.loodse", "*"} {
		_, err := s.in(t, where, accounts).Patch(t.Context(), "acme", types.MergePatchType, []byte(`{"spec":{"roles":["Provider"]}}`), metav1.PatchOptions{})
		require.True(t, apierrors.IsConflict(err), "%s: %v", where, err)
		require.ErrorContains(t, err, "region eu.loodse, region us.loodse each have an object of this name", where)
	}
	s.unwritten(t)
}

// A region refuses the coordinator's write: the answer has the region's reason, and nothing is in effect.
func TestARegionRefusesTheCoordinator(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.ring.Server("peer-b").Inject(regiontest.Fault{Verb: "create", Resource: accounts.GroupResource(), Skip: 1, Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
	code, answer := s.send(t, http.MethodPost, "/regions/eu.loodse"+accountsPath, jsonType, newAcme)
	require.Equal(t, http.StatusForbidden, code, answer)
	require.Contains(t, answer, "region us.loodse refuses it")
	require.Contains(t, answer, "nothing is in effect")
	require.NotContains(t, answer, "peer-")
	gone(t, s)
}

// A region is lost between the dry run and the operation: the answer is a 503 with its name, and nothing is in effect.
func TestARegionIsLost(t *testing.T) {
	var at steps
	s := newScene(t, fanout.Options{Observer: at.observer(), Cleanup: 200 * time.Millisecond})
	at.next(func(e fanout.StepEvent) bool {
		s.ring.Partition("peer-b", e.Verb == "begin")
		return e.Verb == "begin"
	})
	code, answer := s.send(t, http.MethodPost, "/regions/eu.loodse"+accountsPath, jsonType, newAcme)
	require.Equal(t, http.StatusServiceUnavailable, code, answer)
	require.Contains(t, answer, "region us.loodse")
	require.NotContains(t, answer, "peer-")
	s.ring.Partition("peer-b", false)
	gone(t, s)
}

// The parameter timeout ends an operation that is not committed yet.
func TestTimeout(t *testing.T) {
	s := newScene(t, fanout.Options{Cleanup: 200 * time.Millisecond})
	s.ring.Server("peer-b").Inject(regiontest.Fault{Verb: "create", Resource: accounts.GroupResource(), Skip: 1, Times: -1, Do: regiontest.Hang()})
	code, answer := s.send(t, http.MethodPost, "/regions/eu.loodse"+accountsPath+"?timeout=500ms", jsonType, newAcme)
	require.Equal(t, http.StatusGatewayTimeout, code, answer)
	require.NotContains(t, answer, "peer-")
	require.Nil(t, s.get(t, region.PeerName("peer-b"), accounts, "acme"))
}

// A replica is behind its home. An update of the replica's content is a conflict, and a patch is of the home's content.
func TestAReplicaThatIsBehind(t *testing.T) {
	s := newScene(t, fanout.Options{Cleanup: 200 * time.Millisecond})
	s.acme(t)
	s.ring.Partition("peer-b", true)
	labelled := newAccount("acme", "Provider")
	labelled.SetLabels(map[string]string{"of": "home"})
	op, err := s.coordinator.Update(t.Context(), labelled, fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)
	s.ring.Partition("peer-b", false)
	behind := s.get(t, "peer-b", accounts, "acme")
	require.Equal(t, []string{"Tenant"}, roles(behind))

	client := s.in(t, "us.loodse", accounts)
	behind.Object["spec"].(map[string]any)["roles"] = []any{"Tenant", "Provider"}
	_, err = client.Update(t.Context(), behind, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	o, err := client.Patch(t.Context(), "acme", types.MergePatchType, []byte(`{"spec":{"roles":["Tenant","Provider"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"Tenant", "Provider"}, roles(o))
	require.Equal(t, map[string]string{"of": "home"}, o.GetLabels())
}

// A resourceVersion and a UID in a patch are those of the region to which the patch is sent. Others are a conflict.
func TestVersionsInPatches(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	n := 0
	for _, where := range []string{"eu.loodse", "us.loodse"} {
		client := s.in(t, where, accounts)
		for kind, form := range map[types.PatchType]string{
			types.MergePatchType: `{"metadata":{"resourceVersion":%q,"uid":%q,"labels":{"n":"%d"}}}`,
			types.JSONPatchType: `[{"op":"test","path":"/metadata/resourceVersion","value":%q},{"op":"test","path":"/metadata/uid","value":%q},
				{"op":"add","path":"/metadata/labels","value":{"n":"%d"}}]`,
		} {
			before, err := client.Get(t.Context(), "acme", metav1.GetOptions{})
			require.NoError(t, err)
			patch := func(version string, uid types.UID) error {
				n++
				_, err := client.Patch(t.Context(), "acme", kind, fmt.Appendf(nil, form, version, uid, n), metav1.PatchOptions{})
				return err
			}
			require.Error(t, patch(before.GetResourceVersion(), "of another object"), "%s %s", where, kind)
			require.NoError(t, patch(before.GetResourceVersion(), before.GetUID()), "%s %s", where, kind)
			require.Error(t, patch(before.GetResourceVersion(), before.GetUID()), "%s %s: the version is old", where, kind)
			require.Equal(t, strconv.Itoa(n-1), s.get(t, "peer-c", accounts, "acme").GetLabels()["n"])
		}
	}
}
