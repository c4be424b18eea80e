// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	crds "github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

var (
	inPlane = rights.Place{Central: true, Namespace: "kubecarrier-system"}
	inPeer  = rights.Place{}
)

// plants holds a central plane and two peers, which grant the user manager exactly the rights in
// the manifests of deploy.
type plants struct {
	t       *testing.T
	servers map[string]*regiontest.Server

	mu      sync.Mutex
	refused map[string]bool
}

// authorizer returns a func that grants the user manager the rights that all loops need in the
// places. The test itself has all rights.
func (p *plants) authorizer(name string, places ...rights.Place) func(regiontest.Request) error {
	var cluster []*rbacv1.ClusterRole
	var namespaced []*rbacv1.Role
	for _, loop := range rights.LoopNames() {
		for _, place := range places {
			c, n, _ := rights.Loop(loop, place)
			cluster, namespaced = append(cluster, c...), append(namespaced, n...)
		}
	}
	allows := func(rules []rbacv1.PolicyRule, r regiontest.Request) bool {
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, r.Verb) &&
				(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
		})
	}
	return func(r regiontest.Request) error {
		if r.User.Name != "manager" || r.Resource == "" ||
			slices.ContainsFunc(cluster, func(role *rbacv1.ClusterRole) bool { return allows(role.Rules, r) }) ||
			slices.ContainsFunc(namespaced, func(role *rbacv1.Role) bool { return role.Namespace == r.Namespace && allows(role.Rules, r) }) {
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		right := fmt.Sprintf("%s %s.%s in %q of %s", r.Verb, r.Resource, r.Group, r.Namespace, name)
		p.refused[right] = true
		return fmt.Errorf("no role allows %s", right)
	}
}

// token is the manager's token, which expires in 2065. Its signature is invalid.
const token = "e30.eyJpYXQiOjIwMDAwMDAwMDAsImV4cCI6MzAwMDAwMDAwMH0.e30"

// asManager returns a kubeconfig with the manager's token.
func asManager(t *testing.T, kubeconfig []byte) []byte {
	t.Helper()
	config, err := clientcmd.Load(kubeconfig)
	require.NoError(t, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: token}
	}
	kubeconfig, err = clientcmd.Write(*config)
	require.NoError(t, err)
	return kubeconfig
}

func newPlants(t *testing.T) *plants {
	t.Helper()
	all, err := crds.TypedCRDs()
	require.NoError(t, err)
	types, err := regiontest.Compile(all...)
	require.NoError(t, err)
	p := &plants{t: t, servers: map[string]*regiontest.Server{}, refused: map[string]bool{}}
	for name, places := range map[string][]rights.Place{"plane": {inPeer, inPlane}, "eu": {inPeer}, "us": {inPeer}} {
		p.servers[name] = regiontest.NewServer(regiontest.Options{
			Name: name, Definitions: types, Tokens: map[string]regiontest.User{token: {Name: "manager"}}, Authorize: p.authorizer(name, places...),
		})
		t.Cleanup(p.servers[name].Close)
	}
	p.apply("plane", `{apiVersion: v1, kind: Namespace, metadata: {name: kubecarrier-system}}`)
	for _, name := range []string{"eu", "us"} {
		kubeconfig, err := p.servers[name].Listen(t.Context())
		require.NoError(t, err)
		kubeconfig = asManager(t, kubeconfig)
		p.apply("plane", fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: kubecarrier-system}, stringData: {kubeconfig: %q}}`, name, kubeconfig))
		p.apply("plane", fmt.Sprintf(`{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %[1]s}, spec: {kubeconfigSecret: {name: %[1]s}}}`, name))
	}
	return p
}

func (p *plants) client(server, apiVersion, kind, namespace string) dynamic.ResourceInterface {
	p.t.Helper()
	d, err := dynamic.NewForConfig(p.servers[server].Config())
	require.NoError(p.t, err)
	gv, err := schema.ParseGroupVersion(apiVersion)
	require.NoError(p.t, err)
	plural := strings.TrimSuffix(strings.ToLower(kind)+"s", "ys")
	if strings.HasSuffix(kind, "y") {
		plural += "ies"
	}
	return d.Resource(gv.WithResource(plural)).Namespace(namespace)
}

func (p *plants) apply(server, manifest string) {
	p.t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(p.t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	_, err := p.client(server, obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace()).
		Apply(p.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
	require.NoError(p.t, err)
}

// phase returns the status.phase of an object, "" if the object or its phase is missing.
func (p *plants) phase(server, apiVersion, kind, namespace, name string) string {
	p.t.Helper()
	obj, err := p.client(server, apiVersion, kind, namespace).Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return phase
}

// eventually waits until done returns true.
func (p *plants) eventually(what string, done func() bool) {
	p.t.Helper()
	require.Eventually(p.t, done, 2*time.Minute, 50*time.Millisecond, what)
}

// logTo returns a logger that writes to the log of the test, and drops lines after the test has
// ended: goroutines of controller-runtime log after Start has returned.
func logTo(t *testing.T) logr.Logger {
	var mu sync.Mutex
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			t.Log(prefix, args)
		}
	}, funcr.Options{})
}

// start runs one replica until the test calls stop or ends, and returns the address of its health.
func (p *plants) start(identity string) (health string, stop func()) {
	p.t.Helper()
	c, err := config.Parse([]byte(`{apiVersion: manager.atoll.dev/v1alpha1, kind: ManagerConfiguration, health: {address: "127.0.0.1:0"},
		peers: {probeInterval: 1s}, fanout: {sweepInterval: 1s}, serviceClusters: {probeInterval: 1s, allowAddresses: [127.0.0.0/8]}}`))
	require.NoError(p.t, err)
	plane := p.servers["plane"].Config()
	plane.BearerToken = token
	m, err := New(c, Options{Identity: identity, Central: plane})
	require.NoError(p.t, err)
	ctx, cancel := context.WithCancel(logr.NewContext(p.t.Context(), logTo(p.t)))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(p.t, <-ended)
	})
	p.t.Cleanup(stop)
	address, err := m.Address(ctx)
	require.NoError(p.t, err)
	return "http://" + address.String(), stop
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { require.NoError(t, response.Body.Close()) }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(data)
}

const (
	catalog     = "catalog.kubecarrier.io/v1alpha1"
	kubecarrier = "kubecarrier.io/v1alpha1"
	master      = "master.kubecarrier.io/v1alpha1"
)

const manifest = `{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: %s},
  spec: {roles: [Provider], subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: alice}]}}`

// Two replicas share all loops of a master. After one of them has stopped, the other does all the
// work.
func TestReplicas(t *testing.T) {
	p := newPlants(t)
	first, stopA := p.start("a")
	second, _ := p.start("b")
	p.eventually("readiness", func() bool { code, _ := get(t, first+"/readyz"); return code == http.StatusOK })
	_, body := get(t, first+"/readyz")
	require.Equal(t, "[+]member ok\n[+]peers: the installation is not a master\n", body)
	require.Empty(t, p.phase("plane", master, "Peer", "", "eu"), "nothing happens before the installation is a master")

	p.apply("plane", `{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}`)
	for _, name := range []string{"local", "eu", "us"} {
		p.eventually("Peer "+name, func() bool { return p.phase("plane", master, "Peer", "", name) == "Ready" })
	}

	p.apply("plane", fmt.Sprintf(manifest, "loodse"))
	for _, name := range []string{"plane", "eu", "us"} {
		p.eventually("Account in "+name, func() bool { return p.phase(name, catalog, "Account", "", "loodse") == "Ready" })
		bindings, err := p.client(name, "rbac.authorization.k8s.io/v1", "RoleBinding", "loodse").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, bindings.Items, 1)
	}

	for _, name := range []string{"eu", "us"} {
		p.apply(name, `{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {name: eu-west-1, namespace: loodse}}`)
	}
	p.eventually("one claim wins", func() bool {
		eu, us := p.phase("eu", kubecarrier, "RegionClaim", "loodse", "eu-west-1"), p.phase("us", kubecarrier, "RegionClaim", "loodse", "eu-west-1")
		return eu == "Bound" && us == "Conflict" || eu == "Conflict" && us == "Bound"
	})

	p.becomesReady()

	code, body := get(t, first+"/metrics")
	require.Equal(t, http.StatusOK, code)
	for _, line := range []string{"atoll_shard_replicas 2\n", "atoll_master_running 1\n", `atoll_peer_healthy{peer="eu"} 1` + "\n", `atoll_peer_credentials_expiry_timestamp_seconds{peer="eu"} 3e+09` + "\n"} {
		require.Contains(t, body, line)
	}
	code, body = get(t, first+"/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "[+]member ok\n[+]peers ok\n[+]peer eu ok\n[+]peer local ok\n[+]peer us ok\n", body)

	p.eventually("Events beside their objects", func() bool {
		seen := map[string]bool{}
		for _, server := range []string{"plane", "eu", "us"} {
			for _, namespace := range []string{"default", "loodse"} {
				list, err := p.client(server, "v1", "Event", namespace).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				for _, e := range list.Items {
					kind, _, _ := unstructured.NestedString(e.Object, "involvedObject", "kind")
					seen[fmt.Sprint(kind, " ", e.Object["reason"])] = true
				}
			}
		}
		return seen["Peer PeerReady"] && seen["Account Converged"] && seen["RegionClaim Bound"] && seen["ServiceCluster ClusterReady"] && seen["RegionClaim Conflict"]
	})

	stopA()
	p.apply("plane", strings.Replace(fmt.Sprintf(manifest, "acme"), "Provider", "Tenant", 1))
	p.eventually("Account without replica a", func() bool { return p.phase("plane", catalog, "Account", "", "acme") == "Ready" })
	p.eventually("the region is in the catalogue of the tenant", func() bool {
		return p.phase("plane", catalog, "Region", "acme", "eu-west-1.loodse") == "Ready"
	})
	p.mu.Lock()
	require.Empty(t, p.refused)
	p.mu.Unlock()
	p.eventually("replica a has left", func() bool {
		_, body := get(t, second+"/metrics")
		return strings.Contains(body, "atoll_shard_replicas 1\n")
	})
	_, body = get(t, second+"/metrics")
	require.Regexp(t, `atoll_servicecluster_probes_total{outcome="success"} [1-9]`, body)

	p.apply("plane", `{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: false}}`)
	p.eventually("the loops end", func() bool {
		_, body := get(t, second+"/metrics")
		return strings.Contains(body, "atoll_master_running 0\n")
	})
}

// becomesReady registers a cluster in the peer that serves the region eu-west-1, and waits until it is Ready.
func (p *plants) becomesReady() {
	p.t.Helper()
	peer := "eu"
	if p.phase("us", kubecarrier, "RegionClaim", "loodse", "eu-west-1") == "Bound" {
		peer = "us"
	}
	cluster := regiontest.NewServer(regiontest.Options{Name: "cluster"})
	p.t.Cleanup(cluster.Close)
	kubeconfig, err := cluster.Listen(p.t.Context())
	require.NoError(p.t, err)
	p.apply(peer, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: eu-west-1, namespace: loodse}, stringData: {kubeconfig: %q}}`, kubeconfig))
	p.apply(peer, `{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {name: eu-west-1, namespace: loodse}, spec: {kubeconfigSecret: {name: eu-west-1}}}`)
	last := ""
	defer func() { p.t.Log("the ServiceCluster in", peer, "is", last) }()
	p.eventually("the ServiceCluster is Ready", func() bool {
		obj, err := p.client(peer, kubecarrier, "ServiceCluster", "loodse").Get(p.t.Context(), "eu-west-1", metav1.GetOptions{})
		last = fmt.Sprint(obj, err)
		return p.phase(peer, kubecarrier, "ServiceCluster", "loodse", "eu-west-1") == "Ready"
	})
}

func TestReadinessNeedsAPlane(t *testing.T) {
	p := newPlants(t)
	p.servers["plane"].Partition(true)
	health, _ := p.start("a")
	p.eventually("liveness", func() bool { code, _ := get(t, health+"/livez"); return code == http.StatusOK })
	code, body := get(t, health+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "[-]member failed: this replica is not a member of its group")
	p.servers["plane"].Partition(false)
	p.eventually("readiness", func() bool { code, _ := get(t, health+"/readyz"); return code == http.StatusOK })
}
