// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

const (
	objects  = 10_000 // in each region
	planesOf = "ATOLL_PLANES"
	bareOnly = "ATOLL_BARE"
)

// readers gives the users of group "readers" the right to read ConfigMaps in all namespaces.
const readers = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: read-configmaps}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: read-configmaps}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: read-configmaps}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]}`

// TestMain also serves as the gateway, or as bare proxies, in a process of its own, so that its processor time can be
// separated from the time of clients and API servers.
func TestMain(m *testing.M) {
	if dir := os.Getenv(planesOf); dir != "" {
		if err := serveAlone(dir, os.Getenv(bareOnly) != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(planetest.Run(m))
}

// serveAlone serves the planes whose kubeconfigs are in dir until standard input ends: as one at /regions/*, or, if bare
// is set, one by one at /NAME. It prints its address.
func serveAlone(dir string, bare bool) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.kubeconfig"))
	if err != nil {
		return err
	}
	var peers []region.Peer
	bares := http.NewServeMux()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".kubeconfig")
		kubeconfig, err := os.ReadFile(file) //nolint:gosec // the test wrote it
		if err != nil {
			return err
		}
		credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
		if err != nil {
			return err
		}
		peers = append(peers, region.Peer{Name: region.PeerName(name), Regions: []region.Key{{Provider: "loodse", Name: name}}, Credentials: credentials})
		config, err := plane.ConfigOf(kubeconfig)
		if err != nil {
			return err
		}
		at, err := url.Parse(config.Host)
		if err != nil {
			return err
		}
		transport, err := rest.TransportFor(config)
		if err != nil {
			return err
		}
		bares.Handle("/"+name+"/", http.StripPrefix("/"+name, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport}))
	}
	var handler http.Handler = bares
	if !bare {
		if handler, err = merged(peers); err != nil {
			return err
		}
	}
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	fmt.Println(server.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// merged returns a gateway of the peers that acts as itself for everybody.
func merged(peers []region.Peer) (http.Handler, error) {
	source, err := region.FromPeers(peers...)
	if err != nil {
		return nil, err
	}
	ring, err := region.NewRing(source, region.Options{})
	if err != nil {
		return nil, err
	}
	go func() { _ = ring.Start(context.Background()) }() // until the process ends
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{Budget: router.Budget{QPS: -1}})
	if err != nil {
		return nil, err
	}
	single, err := proxy.New(routes, reader, proxy.Options{})
	if err != nil {
		return nil, err
	}
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{})
	if err != nil {
		return nil, err
	}
	go func() { _ = sharing.Start(context.Background()) }() // until the process ends
	return apiserver.New(routes, single, apiserver.Options{Sharing: sharing})
}

// readerHeader is the header with the name of the caller; without it, all callers are one.
const readerHeader = "X-Reader"

// reader returns the identity of a caller.
func reader(r *http.Request) (router.Identity, error) {
	return router.Impersonate(router.User{Name: "reader" + r.Header.Get(readerHeader), Groups: []string{"readers"}}), nil
}

// alone is a process of serveAlone.
type alone struct {
	cmd     *exec.Cmd
	address string
}

func newAlone(b *testing.B, dir string, bare bool, environment ...string) *alone {
	b.Helper()
	a := &alone{cmd: exec.CommandContext(b.Context(), os.Args[0])}
	a.cmd.Env = append(append(os.Environ(), planesOf+"="+dir), environment...)
	if bare {
		a.cmd.Env = append(a.cmd.Env, bareOnly+"=true")
	}
	a.cmd.Stderr = os.Stderr
	in, err := a.cmd.StdinPipe()
	require.NoError(b, err)
	out, err := a.cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, a.cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = a.cmd.Wait() // an error: the context of the benchmark has ended
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	a.address = strings.TrimSpace(line)
	return a
}

// used returns the processor time of the process, and its peak memory in bytes.
func (a *alone) used(b *testing.B) (cpu time.Duration, peak int) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		cpu += time.Duration(n) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	require.NoError(b, err)
	_, rest, _ = strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(b, err)
	return cpu, kib << 10
}

// BenchmarkMergedList lists 3 x 10,000 ConfigMaps of 1.5 KB of real API servers, in turn merged and through three bare
// reverse proxies, as alike requests without compression: whole lists, and lists in pages of 500. Gateway and proxies are
// processes of their own. "cpu" is the processor time of the gateway divided by that of the proxies, "wall" the time by
// the clock of the merged list divided by that of the three lists one after the other, "paged-cpu" and "paged-wall" the
// same for proxied lists in pages.
func BenchmarkMergedList(b *testing.B) {
	planes, dir := filled(b)
	gateway, bare := newAlone(b, dir, false), newAlone(b, dir, true)
	client := httptest.NewTLSServer(http.NotFoundHandler()).Client() // it trusts the certificate of httptest
	const path = "/api/v1/namespaces/cost/configmaps"
	list := func(address string) (next string, size int64) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(b, err)
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := client.Do(req)
		require.NoError(b, err)
		defer func() { _ = resp.Body.Close() }()
		head := make([]byte, 500)
		n, err := io.ReadFull(resp.Body, head)
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, resp.StatusCode, "%s", head[:n])
		size, err = io.Copy(io.Discard, resp.Body)
		require.NoError(b, err)
		if _, after, ok := strings.Cut(string(head), `"continue":"`); ok {
			next, _, _ = strings.Cut(after, `"`)
		}
		return next, size + int64(n)
	}
	direct := func(query string) (size int64) {
		for _, p := range planes {
			next, more := "", true
			for ; more; more = next != "" {
				var n int64
				next, n = list(bare.address + "/" + p.Name() + path + "?" + query + "&continue=" + next)
				size += n
			}
		}
		return size
	}
	measure := func(a *alone, f func()) (cpu, wall float64) {
		before, _ := a.used(b)
		began := time.Now()
		f()
		after, _ := a.used(b)
		return (after - before).Seconds(), time.Since(began).Seconds()
	}
	var cpu, wall, pagedCPU, pagedWall []float64
	var last, size float64
	for b.Loop() {
		wholeCPU, wholeWall := measure(bare, func() { size = float64(direct("")) })
		partsCPU, partsWall := measure(bare, func() { direct("limit=500") })
		ownCPU, ownWall := measure(gateway, func() {
			_, n := list(gateway.address + "/regions/*" + path)
			require.Greater(b, float64(n), size)
		})
		cpu, wall, last = append(cpu, ownCPU/wholeCPU), append(wall, ownWall/wholeWall), ownCPU
		pagedCPU, pagedWall = append(pagedCPU, ownCPU/partsCPU), append(pagedWall, ownWall/partsWall)
	}
	_, peak := gateway.used(b)
	for name, values := range map[string][]float64{"cpu": cpu, "wall": wall, "paged-cpu": pagedCPU, "paged-wall": pagedWall} {
		b.ReportMetric(median(values), name)
	}
	b.ReportMetric(last, "cpu-s")
	b.ReportMetric(float64(peak>>20), "peak-MiB")
}

// filled returns planes with objects, and a directory with their kubeconfigs.
func filled(b *testing.B) (planes []*plane.Plane, dir string) {
	b.Helper()
	dir, planes = b.TempDir(), planetest.Shared(b, 3)
	var filling sync.WaitGroup
	for _, p := range planes {
		planetest.Apply(b, p, readers)
		require.NoError(b, os.WriteFile(filepath.Join(dir, p.Name()+".kubeconfig"), p.Kubeconfig(), 0o600))
		filling.Go(func() { fill(b, p) })
	}
	filling.Wait()
	return planes, dir
}

// median sorts the values, and returns the middle one.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// fill creates the objects of a plane.
func fill(b *testing.B, p *plane.Plane) {
	config := rest.CopyConfig(p.Config())
	config.QPS = -1
	client := planetest.Dynamic(b, config).Resource(configMaps).Namespace("cost")
	planetest.Apply(b, p, "{apiVersion: v1, kind: Namespace, metadata: {name: cost}}")
	var workers sync.WaitGroup
	errs := make([]error, 8)
	for w := range errs {
		workers.Go(func() {
			for i := w; i < objects && errs[w] == nil; i += len(errs) {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{
					"text": strings.Repeat(fmt.Sprintf("%08x ", i*2654435761), 72), "more": "a line\nanother line\n"}}}
				o.SetName(fmt.Sprintf("settings-%d", i))
				o.SetLabels(map[string]string{"app.kubernetes.io/name": "cost", "app.kubernetes.io/part-of": "benchmarks"})
				_, errs[w] = client.Create(b.Context(), o, metav1.CreateOptions{})
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Error(err)
	}
}
