// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/clusterview"
)

// syncRight is the only right of a syncer in its upstream.
const syncRight = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sync-%[1]s}
rules: [{apiGroups: [workload.kcp.io], resources: [synctargets], resourceNames: [%[1]s], verbs: [sync]}]
`

// TestPullByView is TestPull with a syncer that reaches its upstream only through a clusterview.Handler. Its credentials
// have the right to sync its SyncTarget, and the gateway has the right to act as the user of the SyncTarget. The
// credentials read no Secret of another cluster, neither directly nor through the Handler.
func TestPullByView(t *testing.T) {
	pull(t, "viewed", func(f *fleet, name string) []byte {
		kubeconfig, err := f.up.plane.RunAs(t.Context(), fmt.Appendf(nil, syncRight, name))
		require.NoError(t, err)
		own, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		require.NoError(t, err)
		through := viewed(t, f.up.plane, name, own.BearerToken)
		hidden(t, f, own, through)
		config := api.NewConfig()
		config.Clusters["view"] = &api.Cluster{Server: through.Host, CertificateAuthorityData: through.CAData}
		config.AuthInfos["syncer"] = &api.AuthInfo{Token: own.BearerToken}
		config.Contexts["view"] = &api.Context{Cluster: "view", AuthInfo: "syncer"}
		config.CurrentContext = "view"
		data, err := clientcmd.Write(*config)
		require.NoError(t, err)
		return data
	})
}

// viewed serves a clusterview.Handler for the plane, and returns the configuration of a syncer with the given token.
func viewed(t *testing.T, p *plane.Plane, target, token string) *rest.Config {
	t.Helper()
	clusters := "atoll:clusters"
	roles, _, ok := rights.Sync("syncer", rights.Syncing{Target: target, Types: few})
	require.True(t, ok)
	for _, role := range roles {
		role.Name += "-view-" + target
		data, err := yaml.Marshal(role)
		require.NoError(t, err)
		planetest.Apply(t, p, string(data))
		binding := &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: clusters}},
		}
		data, err = yaml.Marshal(binding)
		require.NoError(t, err)
		planetest.Apply(t, p, string(data))
	}
	impersonator, _, err := rights.Impersonate(rights.Impersonation{Users: []string{"atoll:cluster:" + target}, Groups: []string{clusters}})
	require.NoError(t, err)
	manifest, err := yaml.Marshal(impersonator)
	require.NoError(t, err)
	kubeconfig, err := p.RunAs(t.Context(), manifest)
	require.NoError(t, err)

	key := region.Key{Provider: "loodse", Name: p.Name()}
	ring, err := region.NewRing(planetest.NewSource(planetest.PeerAs(t, p, kubeconfig, key)), region.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	handler, err := clusterview.New(routes, func(r *http.Request) (router.Identity, error) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return router.Identity{}, errors.New("no token")
		}
		return router.Caller(given), nil // the region knows its own service accounts
	}, clusterview.Options{})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL + "/synctargets/" + target + "/regions/" + key.String(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// hidden tests that the credentials of a syncer read no object of another cluster.
func hidden(t *testing.T, f *fleet, own, through *rest.Config) {
	t.Helper()
	f.create("another", configMaps, fmt.Sprintf(aConfigMap, "of-another"))
	direct, err := dynamic.NewForConfig(own)
	require.NoError(t, err)
	_, err = direct.Resource(configMaps).Namespace(f.up.namespace).Get(t.Context(), "of-another", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	view, err := dynamic.NewForConfig(through)
	require.NoError(t, err)
	planetest.Eventually(t, time.Minute, "the view reaches the region", func(ctx context.Context) error {
		_, err := view.Resource(configMaps).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
	_, err = view.Resource(configMaps).Namespace(f.up.namespace).Get(t.Context(), "of-another", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	list, err := view.Resource(configMaps).Namespace(f.up.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	_, err = view.Resource(configMaps).Namespace(f.up.namespace).Watch(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}
