// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/adapters/multicluster"
	atollconfig "github.com/atoll-dev/atoll/config"
	v1 "github.com/atoll-dev/atoll/examples/operator/v1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	retry = 20 * time.Millisecond
	if err := v1.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	// After a shutdown, the queue of controller-runtime v0.24.1 may wait forever to give an item to a worker that has ended.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue.(*priorityqueue[...]).handleReadyItems"))
}

var peers = []region.PeerName{"ap-south", "eu-west", "us-east", "us-west"}

// definitions are the CRDs that a ring and the operator need, compiled once.
var definitions = sync.OnceValues(func() (*regiontest.Definitions, error) {
	crds, err := atollconfig.TypedCRDs()
	if err != nil {
		return nil, err
	}
	crd, err := v1.CRD()
	if err != nil {
		return nil, err
	}
	return regiontest.Compile(append(crds, crd)...)
})

// world is four regions in memory, and the cluster of the operator.
type world struct {
	*testing.T

	ring *regiontest.Ring
	host *regiontest.Server
	ops  *fanout.Coordinator // as atollctl has one
}

// newWorld returns regions without Databases. They are members of one ring.
func newWorld(t *testing.T) *world {
	t.Helper()
	crds, err := definitions()
	require.NoError(t, err)
	w := &world{T: t, ring: regiontest.NewRing(peers...), host: regiontest.NewServer(regiontest.Options{})}
	t.Cleanup(w.ring.Close)
	t.Cleanup(w.host.Close)
	t.Cleanup(w.checkRights)
	require.NoError(t, w.ring.AddDefinitions(crds))
	kinds := []fanout.Kind{databases, fanout.Secrets()}
	w.ops, err = fanout.New(w.ring, waltest.NewMemory(), fanout.Options{Kinds: kinds, LeaseTimeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, w.ops.InitPeers(t.Context()))
	return w
}

// start starts a replica of the operator, with a log of its own. stop ends it.
func (w *world) start() (stop func()) {
	w.Helper()
	again := true // each replica in this process has a controller of the same name
	provider, err := multicluster.New(w.ring, controllerruntime.Options{})
	require.NoError(w, err)
	mgr, err := mcmanager.New(w.host.Config(), provider, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	require.NoError(w, err)
	require.NoError(w, setUp(mgr, w.ring, waltest.NewMemory(), controller.Options{SkipNameValidation: &again}))
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(w, <-ended)
	})
}

// in returns a typed client of one region, without a cache.
func (w *world) in(peer region.PeerName) client.Client {
	w.Helper()
	c, err := client.New(w.ring.Server(peer).Config(), client.Options{})
	require.NoError(w, err)
	return c
}

func database(name string) *v1.Database {
	return &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.DatabaseSpec{Size: "10Gi"}}
}

// ready returns the condition Ready of a Database.
func (w *world) ready(peer region.PeerName, name string) metav1.Condition {
	w.Helper()
	db := database(name)
	require.NoError(w, w.in(peer).Get(w.Context(), client.ObjectKeyFromObject(db), db))
	if found := meta.FindStatusCondition(db.Status.Conditions, "Ready"); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// names returns the names of the Databases of a region, guards included.
func (w *world) names(peer region.PeerName) (names []string) {
	w.Helper()
	var list v1.DatabaseList
	require.NoError(w, w.in(peer).List(w.Context(), &list))
	for _, db := range list.Items {
		names = append(names, db.Name)
	}
	return names
}

// password returns the password of a Database in a region; empty if the Secret does not exist.
func (w *world) password(peer region.PeerName, name string) string {
	w.Helper()
	var secret corev1.Secret
	err := w.in(peer).Get(w.Context(), client.ObjectKey{Namespace: "default", Name: name}, &secret)
	require.NoError(w, client.IgnoreNotFound(err))
	return string(secret.Data["password"])
}

// await waits until done returns true, for at most a minute.
func (w *world) await(done func() bool) {
	w.Helper()
	require.Eventually(w, done, time.Minute, 5*time.Millisecond)
}

// awaitReason waits until the condition Ready of a Database has the reason.
func (w *world) awaitReason(peer region.PeerName, name, reason string) metav1.Condition {
	w.Helper()
	w.await(func() bool { return w.ready(peer, name).Reason == reason })
	return w.ready(peer, name)
}

// reports returns how many writes of the status of a Database a region has accepted.
func (w *world) reports(peer region.PeerName) (n int) {
	for _, r := range w.ring.Server(peer).Requests() {
		if r.Code < 300 && r.Verb == "update" && r.Subresource == "status" {
			n++
		}
	}
	return n
}

// requests returns how many requests with the verb for the resource a region has received.
func (w *world) requests(peer region.PeerName, verb, resource string) (n int) {
	for _, r := range w.ring.Server(peer).Requests() {
		if r.Verb == verb && r.Resource == resource {
			n++
		}
	}
	return n
}

// writes returns how many requests have changed a region.
func (w *world) writes() (n int) {
	for _, peer := range peers {
		for _, r := range w.ring.Server(peer).Requests() {
			if r.Code < 300 && !slices.Contains([]string{"", "get", "list", "watch"}, r.Verb) {
				n++
			}
		}
	}
	return n
}

// checkRights requires that rbac.yaml allows all requests that the regions have received.
func (w *world) checkRights() {
	data, err := os.ReadFile("rbac.yaml")
	require.NoError(w, err)
	var role rbacv1.ClusterRole
	require.NoError(w, yaml.UnmarshalStrict(data, &role))
	for _, peer := range peers {
		for _, r := range w.ring.Server(peer).Requests() {
			resource := strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
			if resource == "" || resource == "peersets" && r.Verb == "create" { // discovery, and the preparation of the ring
				continue
			}
			require.True(w, slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, r.Verb) &&
					(rule.ResourceNames == nil || slices.Contains(rule.ResourceNames, r.Name))
			}), "%s %s %s", r.Verb, resource, r.Name)
		}
	}
}
