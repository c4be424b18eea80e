// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/join"
)

// world is an upstream with the manifests of joins, and two Approvers with the rights that they need.
type world struct {
	t        *testing.T
	upstream *plane.Plane
	maker    region.API // makes tokens, with the rights for it

	mu      sync.Mutex
	denied  []join.DecideEvent
	expired []join.ExpireEvent
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, upstream: planetest.New(t, plane.Options{Name: "upstream", Controllers: true})}
	admin, err := region.APIFor(w.upstream.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), admin, config.InstallOptions{Groups: []string{"workload.kcp.io"}})
	require.NoError(t, err)
	for _, object := range join.Manifests("") {
		planetest.Apply(t, w.upstream, yamlOf(t, object))
	}
	everywhere, inside := join.ApproverRights()
	for range 2 {
		approver, err := join.NewApprover(w.as("approver", append(everywhere, inside...)), join.ApproverOptions{Observer: &join.Observer{
			Denied: func(_ context.Context, e join.DecideEvent) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.denied = append(w.denied, e)
			},
			Expired: func(_ context.Context, e join.ExpireEvent) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.expired = append(w.expired, e)
			},
		}})
		require.NoError(t, err)
		w.run(approver.Start)
	}
	w.maker = w.as("maker", join.TokenRights())
	return w
}

func yamlOf(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// as returns clients with exactly these rights.
func (w *world) as(name string, rules []rbacv1.PolicyRule) region.API {
	w.t.Helper()
	role := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}
	kubeconfig, err := w.upstream.RunAs(w.t.Context(), []byte(yamlOf(w.t, role)))
	require.NoError(w.t, err)
	return w.api(kubeconfig)
}

func (w *world) api(kubeconfig []byte) region.API {
	w.t.Helper()
	c, err := plane.ConfigOf(kubeconfig)
	require.NoError(w.t, err)
	api, err := region.APIFor(c)
	require.NoError(w.t, err)
	return api
}

func (w *world) run(start func(context.Context) error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		require.NoError(w.t, <-ended)
	})
}

func (w *world) target(name string) {
	w.t.Helper()
	planetest.Apply(w.t, w.upstream, "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: "+name+"}}")
}

// token makes a token and returns the path of its kubeconfig.
func (w *world) token(target string) string {
	w.t.Helper()
	c := w.upstream.Config()
	kubeconfig, err := join.NewToken(w.t.Context(), w.maker, target, join.TokenOptions{Server: c.Host, CA: c.CAData})
	require.NoError(w.t, err)
	path := filepath.Join(w.t.TempDir(), "token")
	require.NoError(w.t, os.WriteFile(path, kubeconfig, 0o600))
	return path
}

func (w *world) renewer(target, token string) (r *join.Renewer, file string) {
	w.t.Helper()
	file = filepath.Join(w.t.TempDir(), "kubeconfig")
	// kube-controller-manager dates certificates back by five minutes: a third of 15 minutes is now.
	r, err := join.NewRenewer(join.RenewerOptions{Target: target, Token: token, File: file, Lifetime: 10 * time.Minute, RenewAt: 0.34, Poll: 100 * time.Millisecond})
	require.NoError(w.t, err)
	return r, file
}

// user returns the user and the groups of a kubeconfig, as the upstream sees them.
func (w *world) user(file string) (name string, groups []string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(w.t, err)
	c, err := plane.ConfigOf(text)
	require.NoError(w.t, err)
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	answer, err := planetest.Dynamic(w.t, c).Resource(reviews).Create(w.t.Context(), review, metav1.CreateOptions{})
	require.NoError(w.t, err)
	name, _, _ = unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	groups, _, _ = unstructured.NestedStringSlice(answer.Object, "status", "userInfo", "groups")
	return name, groups
}

// reported waits until a denial with the text was reported, and returns it.
func (w *world) reported(text string) (e join.DecideEvent) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e = range w.denied {
			if strings.Contains(e.Message, text) {
				return true
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond, "a denial with %q is reported", text)
	return e
}

func (w *world) lastDenied() join.DecideEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.denied[len(w.denied)-1]
}
