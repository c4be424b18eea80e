// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanHelper) != "" {
		os.Exit(startAndHang())
	}
	os.Exit(planetest.Run(m))
}

// orphanHelper is the name of an environment variable. If the variable holds a directory, the test
// binary starts a plane in the directory, prints the IDs of the plane's processes, and never stops
// the plane.
const orphanHelper = "ATOLL_TEST_ORPHAN"

func startAndHang() int {
	p, err := plane.Start(context.Background(), plane.Options{Dir: os.Getenv(orphanHelper)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(p.PIDs()); err != nil {
		return 1
	}
	select {}
}

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// get requests /version, which RBAC lets everyone read.
func get(ctx context.Context, t *testing.T, config *rest.Config) error {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", nil)
	require.NoError(t, err)
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	return errors.Join(response.Body.Close(), statusError(response))
}

func statusError(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func TestServesVerifiedTLS(t *testing.T) {
	planes := planetest.Shared(t, 2)
	require.NoError(t, get(t.Context(), t, planes[0].Config()))

	stranger := planes[0].Config()
	stranger.CAData = planes[1].Config().CAData
	err := get(t.Context(), t, stranger)
	require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
}

func TestKubeconfigIsConfig(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	config, err := plane.ConfigOf(p.Kubeconfig())
	require.NoError(t, err)
	require.Equal(t, p.Config(), config)
}

func TestReportsPinnedVersion(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	d, err := discovery.NewDiscoveryClientForConfig(p.Config())
	require.NoError(t, err)
	version, err := d.ServerVersion()
	require.NoError(t, err)
	require.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)
	require.Equal(t, "1", version.Major)
}

func TestPlanesAreDifferentClusters(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range planetest.Shared(t, 2) {
		namespace, err := planetest.Dynamic(t, p.Config()).Resource(namespaces).Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
		require.NoError(t, err)
		seen[string(namespace.GetUID())] = true
	}
	require.Len(t, seen, 2)
}

func TestAPIServerFlags(t *testing.T) {
	p := planetest.New(t, plane.Options{Name: "older", APIServerFlags: []string{"--runtime-config=apps/v1=false"}})
	d, err := discovery.NewDiscoveryClientForConfig(p.Config())
	require.NoError(t, err)
	groups, err := d.ServerGroups()
	require.NoError(t, err)
	for _, group := range groups.Groups {
		require.NotEqual(t, "apps", group.Name)
	}
}

func TestSharedAreShared(t *testing.T) {
	require.Same(t, planetest.Shared(t, 1)[0], planetest.Shared(t, 2)[0])
	require.Equal(t, "us-east", planetest.Shared(t, 2)[1].Name())
}
