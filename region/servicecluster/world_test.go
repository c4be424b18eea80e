// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

const account = "loodse"

var definitions = sync.OnceValues(func() (*regiontest.Definitions, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io"} {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return regiontest.Compile(crds...)
})

// world is a ring of peers in memory, and a central plane whose Arbiter binds regions.
type world struct {
	t     *testing.T
	ring  *regiontest.Ring
	plane *regiontest.Server
	probe *fakeProbe
	admin *region.Conn // nil: the connections of the ring
}

// inWorld runs the test in a bubble, with the peers eu and us.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ring: regiontest.NewRing("eu", "us"), plane: regiontest.NewServer(regiontest.Options{Name: "plane"}), probe: newFakeProbe()}
		t.Cleanup(w.ring.Close)
		t.Cleanup(w.plane.Close)
		types, err := definitions()
		require.NoError(t, err)
		require.NoError(t, w.ring.AddDefinitions(types))
		w.create(w.central(), "v1", "namespaces", "Namespace", "", "kubecarrier-system", nil)
		for _, p := range []region.PeerName{"eu", "us"} {
			w.create(w.of(p), "v1", "namespaces", "Namespace", "", account, nil)
		}
		test(t, w)
	})
}

func (w *world) central() dynamic.Interface {
	api, err := region.APIFor(w.plane.Config())
	require.NoError(w.t, err)
	return api.Dynamic()
}

func (w *world) of(p region.PeerName) dynamic.Interface {
	w.t.Helper()
	if w.admin != nil {
		return w.admin.Dynamic()
	}
	conn, err := w.ring.Conn(p)
	require.NoError(w.t, err)
	return conn.Dynamic()
}

// arbitrate runs an Arbiter.
func (w *world) arbitrate() (stop func()) {
	w.t.Helper()
	plane, err := region.APIFor(w.plane.Config())
	require.NoError(w.t, err)
	a, err := claim.New(plane, w.ring, claim.Options{})
	require.NoError(w.t, err)
	return w.run(a.Start)
}

// start runs a Controller with the fake probe, unless the options have another.
func (w *world) start(opts Options) (stop func()) {
	w.t.Helper()
	if opts.Probe == nil {
		opts.Probe = w.probe.probe
	}
	c, err := New(w.ring, opts)
	require.NoError(w.t, err)
	return w.run(c.Start)
}

func (w *world) run(start func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = start(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		require.NoError(w.t, failed)
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) create(client dynamic.Interface, group, resource, kind, namespace, name string, content map[string]any) {
	w.t.Helper()
	gv, err := schema.ParseGroupVersion(group)
	require.NoError(w.t, err)
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range content {
		obj.Object[key] = value
	}
	obj.SetAPIVersion(group)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	_, err = client.Resource(gv.WithResource(resource)).Namespace(namespace).Create(w.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// secret creates the Secret of a cluster, whose kubeconfig is a word that the fake probe knows.
func (w *world) secret(p region.PeerName, name, kubeconfig string) {
	w.t.Helper()
	w.create(w.of(p), "v1", "secrets", "Secret", account, name, map[string]any{"stringData": map[string]any{SecretKey: kubeconfig}})
}

// apply creates a ServiceCluster without a claim.
func (w *world) apply(p region.PeerName, name, secret string) {
	w.t.Helper()
	w.create(w.of(p), v1alpha1.GroupVersion.String(), "serviceclusters", "ServiceCluster", account, name,
		map[string]any{"spec": map[string]any{"kubeconfigSecret": map[string]any{"name": secret}}})
}

// commit makes an applied ServiceCluster Configured, as an adoption does.
func (w *world) commit(p region.PeerName, name string) {
	w.t.Helper()
	w.edit(p, name, func(obj *unstructured.Unstructured) error {
		return unstructured.SetNestedMap(obj.Object, fanoutOf(p, p, "Primary", "Configured"), "spec", "fanout")
	})
}

// bind writes the condition RegionBound, as an Arbiter does.
func (w *world) bind(p region.PeerName, name string) {
	w.t.Helper()
	const condition = `{"type":"RegionBound","status":"True","reason":"Bound","message":"it is","lastTransitionTime":"2026-03-01T12:00:00Z"}`
	status := `{"apiVersion":"kubecarrier.io/v1alpha1","kind":"ServiceCluster","status":{"conditions":[` + condition + `]}}`
	_, err := w.of(p).Resource(clusters).Namespace(account).Patch(w.t.Context(), name, types.ApplyPatchType, []byte(status),
		metav1.PatchOptions{FieldManager: claim.FieldManager, Force: new(true)}, "status")
	require.NoError(w.t, err)
}

// guard creates a guard of the ServiceCluster in target.
func (w *world) guard(p, target region.PeerName, name string) {
	w.t.Helper()
	w.create(w.of(p), v1alpha1.GroupVersion.String(), "serviceclusters", "ServiceCluster", account, name,
		map[string]any{"spec": map[string]any{"fanout": fanoutOf(p, target, "Secondary", "Reserved")}})
}

func fanoutOf(p, target region.PeerName, role, stage string) map[string]any {
	claim := map[string]any{
		"operation": "op-1", "digest": "d", "start": "2026-03-01T12:00:00.000000Z", "role": role, "peer": string(p), "target": string(target),
	}
	if role == "Secondary" {
		claim["primary"] = map[string]any{"peer": string(target), "uid": "u-1"}
	}
	return map[string]any{"claim": claim, "stage": stage}
}

func (w *world) edit(p region.PeerName, name string, change func(*unstructured.Unstructured) error) {
	w.t.Helper()
	client := w.of(p).Resource(clusters).Namespace(account)
	require.NoError(w.t, retry.RetryOnConflict(retry.DefaultRetry, func() error { // the Arbiter writes too
		obj, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := change(obj); err != nil {
			return err
		}
		_, err = client.Update(w.t.Context(), obj, metav1.UpdateOptions{})
		return err
	}))
}

func (w *world) delete(p region.PeerName, name string) {
	w.t.Helper()
	require.NoError(w.t, w.of(p).Resource(clusters).Namespace(account).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// stored returns the ServiceCluster in a peer, even while the peer is unreachable.
func (w *world) stored(p region.PeerName, name string) *v1alpha1.ServiceCluster {
	w.t.Helper()
	objects, err := w.ring.Server(p).Objects(clusters.GroupResource())
	require.NoError(w.t, err)
	for _, o := range objects {
		raw, err := json.Marshal(o)
		require.NoError(w.t, err)
		var c v1alpha1.ServiceCluster
		require.NoError(w.t, json.Unmarshal(raw, &c))
		if c.Namespace == account && c.Name == name {
			return &c
		}
	}
	require.Failf(w.t, "no such ServiceCluster", "%s in %s", name, p)
	return nil
}

// shows returns the phase and the reasons of Ready and Reachable, such as "Ready Complete Answered".
func (w *world) shows(p region.PeerName, name string) string {
	w.t.Helper()
	c := w.stored(p, name)
	reason := func(of string) string {
		if found := meta.FindStatusCondition(c.Status.Conditions, of); found != nil {
			return found.Reason
		}
		return "-"
	}
	phase := string(c.Status.Phase)
	if phase == "" {
		phase = "-"
	}
	return phase + " " + reason(ready) + " " + reason(reachable)
}

// statusWrites counts the requests for the status of ServiceClusters.
func (w *world) statusWrites(p region.PeerName) (n int) {
	for _, r := range w.ring.Server(p).Requests() {
		if r.Verb == "patch" && r.Resource == "serviceclusters" && r.FieldManager != claim.FieldManager {
			n++
		}
	}
	return n
}

// passes lets d pass and waits until all goroutines are idle.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// fakeProbe answers by the kubeconfig, which is a word.
type fakeProbe struct {
	mu      sync.Mutex
	answers map[string]error         // by kubeconfig; missing: the version v1.36.0
	slow    map[string]time.Duration // by kubeconfig
	asked   map[string]int
	running int
	most    int // probes that ran at once
}

func newFakeProbe() *fakeProbe {
	return &fakeProbe{answers: map[string]error{}, slow: map[string]time.Duration{}, asked: map[string]int{}}
}

func (f *fakeProbe) set(kubeconfig string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[kubeconfig] = err
}

func (f *fakeProbe) count(kubeconfig string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[kubeconfig]
}

// mostAtOnce returns how many probes have run at once.
func (f *fakeProbe) mostAtOnce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

func (f *fakeProbe) probe(ctx context.Context, kubeconfig []byte) (v1alpha1.KubernetesVersion, error) {
	f.mu.Lock()
	f.asked[string(kubeconfig)]++
	f.running++
	f.most = max(f.most, f.running)
	err, slow := f.answers[string(kubeconfig)], f.slow[string(kubeconfig)]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running--
	}()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return v1alpha1.KubernetesVersion{}, ctx.Err()
	}
	if err != nil {
		return v1alpha1.KubernetesVersion{}, err
	}
	return version136, nil
}
