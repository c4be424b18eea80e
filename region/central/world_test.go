// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// world is a central plane and some clusters in memory, and the loops of one program. Its kubeconfigs are abbreviated:
// "eu" reaches the cluster eu within the process, "eu TOKEN" with a token; anything else is invalid.
type world struct {
	t       testing.TB
	plane   *regiontest.Server
	servers map[string]*regiontest.Server
	token   string // of the clients
	// parse parses a kubeconfig; nil: the abbreviated form in the comment of world.
	parse func([]byte) (region.Credentials, error)
}

func crds(t testing.TB, names ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all := make([]*apiextensionsv1.CustomResourceDefinition, len(names))
	for i, name := range names {
		crd, err := config.CRD(name)
		require.NoError(t, err)
		all[i] = crd
	}
	return all
}

const (
	peerCRD    = "peers.master.kubecarrier.io"
	carrierCRD = "kubecarriers.operator.kubecarrier.io"
	claimCRD   = "regionclaims.kubecarrier.io"
)

// compiled caches compiled types, by their names.
var compiled sync.Map

func definitions(t testing.TB, names ...string) *regiontest.Definitions {
	t.Helper()
	key := strings.Join(names, ",")
	if d, ok := compiled.Load(key); ok {
		return d.(*regiontest.Definitions)
	}
	made, err := regiontest.Compile(crds(t, names...)...)
	require.NoError(t, err)
	d, _ := compiled.LoadOrStore(key, made)
	return d.(*regiontest.Definitions)
}

func newWorld(t testing.TB, names ...string) *world {
	t.Helper()
	w := &world{t: t, servers: map[string]*regiontest.Server{}}
	w.plane = regiontest.NewServer(regiontest.Options{Name: "plane", Definitions: definitions(t, peerCRD, carrierCRD, claimCRD)})
	t.Cleanup(w.plane.Close)
	w.create(w.plane, namespaceResource, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}})
	for _, name := range names {
		w.add(name, regiontest.Options{Name: name, Definitions: definitions(t, carrierCRD, claimCRD)})
	}
	return w
}

// add creates a cluster.
func (w *world) add(name string, opts regiontest.Options) *regiontest.Server {
	s := regiontest.NewServer(opts)
	w.t.Cleanup(s.Close)
	w.servers[name] = s
	return s
}

func (w *world) api(s *regiontest.Server) region.API {
	w.t.Helper()
	config := s.Config()
	config.BearerToken = w.token
	api, err := region.APIFor(config)
	require.NoError(w.t, err)
	return api
}

func (w *world) inProcess(data []byte) (region.Credentials, error) {
	name, token, _ := strings.Cut(string(data), " ")
	s := w.servers[name]
	if s == nil {
		return region.Credentials{}, &region.FieldError{Field: "clusters[0].cluster.server", Reason: "is not an https address", Accept: "https://HOST"}
	}
	c := s.Config()
	c.BearerToken = token
	return region.FromConfig(c)
}

// program is the set of loops of one process.
type program struct {
	w      *world
	source *Source
	ring   *region.Ring
	peers  *Peers
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// program makes a Source, a Ring and Peers.
func (w *world) program(opts PeersOptions) *program {
	w.t.Helper()
	p := &program{w: w}
	local, err := region.FromConfig(w.plane.Config())
	require.NoError(w.t, err)
	p.source, err = New(w.api(w.plane), Options{Local: local})
	require.NoError(w.t, err)
	p.source.secrets.parse = w.inProcess
	if w.parse != nil {
		p.source.secrets.parse = w.parse
	}
	p.ring, err = region.NewRing(p.source, region.Options{})
	require.NoError(w.t, err)
	p.peers, err = NewPeers(p.source, p.ring, opts)
	require.NoError(w.t, err)
	return p
}

// run runs the loops of the program until ctx ends.
func (p *program) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(p.w.t, p.ring.Start(ctx)) })
	wg.Go(func() { require.NoError(p.w.t, p.peers.Start(ctx)) })
	wg.Wait()
}

// start runs a program until the test ends.
func (w *world) start(opts PeersOptions) *program {
	w.t.Helper()
	p := w.program(opts)
	ctx, cancel := context.WithCancel(w.t.Context())
	p.cancel = cancel
	p.wg.Go(func() { p.run(ctx) })
	w.t.Cleanup(p.stop)
	return p
}

func (p *program) stop() {
	p.cancel()
	p.wg.Wait()
}

func (w *world) client(s *regiontest.Server, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	w.t.Helper()
	r := w.api(s).Dynamic().Resource(gvr)
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

func (w *world) create(s *regiontest.Server, gvr schema.GroupVersionResource, namespace string, obj map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	made, err := w.client(s, gvr, namespace).Create(w.t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return made
}

// secret writes the Secret with this name.
func (w *world) secret(name, kubeconfig string) {
	w.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": Namespace},
		"stringData": map[string]any{"kubeconfig": kubeconfig},
	}}
	_, err := w.client(w.plane, secretResource, Namespace).Apply(w.t.Context(), name, obj, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(w.t, err)
}

func (w *world) deleteSecret(name string) {
	w.t.Helper()
	require.NoError(w.t, w.client(w.plane, secretResource, Namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// peer creates a Peer that names a Secret, or none if secret is empty.
func (w *world) peer(name, secret string) {
	w.t.Helper()
	spec := map[string]any{}
	if secret != "" {
		spec["kubeconfigSecret"] = map[string]any{"name": secret}
	}
	w.create(w.plane, peerResource, "", map[string]any{
		"apiVersion": masterv1alpha1.GroupVersion.String(), "kind": "Peer", "metadata": map[string]any{"name": name}, "spec": spec,
	})
}

// register creates a Peer and its Secret, which reaches the cluster of the same name.
func (w *world) register(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.secret(name+"-kubeconfig", name)
		w.peer(name, name+"-kubeconfig")
	}
}

func (w *world) deletePeer(name string) {
	w.t.Helper()
	require.NoError(w.t, w.client(w.plane, peerResource, "").Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) get(name string) *masterv1alpha1.Peer {
	w.t.Helper()
	obj, err := w.client(w.plane, peerResource, "").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return decode(obj)
}

// claim writes a RegionClaim with a phase.
func (w *world) claim(s *regiontest.Server, provider, name, phase string) {
	w.t.Helper()
	w.claimBy(regionv1alpha1.RegionClaimManager, s, provider, name, phase)
}

// claimBy does the same as claim, with manager as the writer of the status.
func (w *world) claimBy(manager string, s *regiontest.Server, provider, name, phase string) {
	w.t.Helper()
	ns := w.client(s, namespaceResource, "")
	_, err := ns.Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": provider},
	}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(w.t, err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubecarrier.io/v1alpha1", "kind": "RegionClaim", "metadata": map[string]any{"name": name, "namespace": provider},
	}}
	claims := w.client(s, claimResource, provider)
	_, err = claims.Create(w.t.Context(), obj, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(w.t, err)
	}
	obj.Object["status"] = map[string]any{"phase": phase}
	_, err = claims.Apply(w.t.Context(), name, obj, metav1.ApplyOptions{FieldManager: manager, Force: true}, "status")
	require.NoError(w.t, err)
}

// carrier writes a KubeCarrier.
func (w *world) carrier(s *regiontest.Server, name string, master bool, labels map[string]any) {
	w.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.kubecarrier.io/v1alpha1", "kind": "KubeCarrier",
		"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"master": master},
	}}
	_, err := w.client(s, carrierResource, "").Apply(w.t.Context(), name, obj, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(w.t, err)
}

// ready returns status and reason of the condition Ready.
func (w *world) ready(name string) string {
	w.t.Helper()
	return w.conditionOf(name, masterv1alpha1.PeerConditionReady)
}

func (w *world) conditionOf(name string, kind masterv1alpha1.PeerConditionType) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.get(name).Status.Conditions, string(kind))
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func (w *world) message(name string, kind masterv1alpha1.PeerConditionType) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.get(name).Status.Conditions, string(kind))
	require.NotNil(w.t, c)
	return c.Message
}

// regions returns the regions in the status, as NAME.PROVIDER.
func (w *world) regions(name string) []string {
	w.t.Helper()
	var all []string
	for _, r := range w.get(name).Status.Regions {
		all = append(all, r.Name+"."+r.Provider)
	}
	return all
}

// served returns the regions of a peer in the Snapshot.
func (p *program) served(name region.PeerName) []string {
	p.w.t.Helper()
	peer, ok := p.ring.Snapshot().Peer(name)
	require.True(p.w.t, ok, "%s is not in the Snapshot", name)
	var all []string
	for _, key := range peer.Regions {
		all = append(all, key.String())
	}
	return all
}

// writes returns the write requests, including failed ones.
func writes(servers ...*regiontest.Server) []regiontest.Request {
	var all []regiontest.Request
	for _, s := range servers {
		for _, r := range s.Requests() {
			switch r.Verb {
			case "create", "update", "patch", "delete", "deletecollection":
				all = append(all, r)
			}
		}
	}
	return all
}

// landed returns the requests that succeeded.
func landed(all []regiontest.Request) []regiontest.Request {
	return slices.DeleteFunc(all, func(r regiontest.Request) bool { return r.Code/100 != 2 })
}

// pass lets d pass and waits until all goroutines are idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var errTest = errors.New("as the test wants it")

// annotate changes a Secret, but not its content.
func (w *world) annotate(name string, value string) {
	w.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
		"name": name, "namespace": Namespace, "annotations": map[string]any{"example.com/value": value},
	}}}
	_, err := w.client(w.plane, secretResource, Namespace).Apply(w.t.Context(), name, obj, metav1.ApplyOptions{FieldManager: "annotator"})
	require.NoError(w.t, err)
}
