// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var (
	nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// logged is the output that each container of the node has logged.
const logged = "the first line\nthe second line\n"

// node configures KWOK for the streams of pods: exec runs a command on this machine, logs and
// attach read files, and a forwarded port ends at a server of the test.
const node = `
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {name: exec}
spec: {execs: [{local: {workDir: %[1]s}}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: logs}
spec: {logs: [{logsFile: %[1]s/log, follow: true}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterAttach
metadata: {name: attach}
spec: {attaches: [{logsFile: %[1]s/said}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: forward}
spec: {forwards: [{target: {address: 127.0.0.1, port: %[2]d}}]}
`

// newNode gives a plane a node with KWOK's kubelet, until the test ends. say appends a line to the
// containers' output, for attached clients.
func newNode(t *testing.T, p *plane.Plane) (say func(line string)) {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.KWOK)
	require.NoError(t, err)
	stages, err := build.Stages(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	// kubectl logs shows these lines without the stamp.
	const stamp = "2026-01-01T00:00:00.000000000Z stdout F "
	log := ""
	for line := range strings.Lines(logged) {
		log += stamp + line
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), []byte(log), 0o600))
	said, err := os.OpenFile(filepath.Join(dir, "said"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = said.Close() })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "through the port") }))
	t.Cleanup(web.Close)
	config := filepath.Join(dir, "kwok.yaml")
	content := fmt.Sprintf(node, dir, web.Listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, os.WriteFile(config, []byte(content), 0o600))
	certificate, key := keyPair(t, dir)

	port := freePort(t)
	cmd := exec.CommandContext(t.Context(), programs[build.KWOK], "--kubeconfig="+planetest.WriteKubeconfig(t, p.Name(), p.Kubeconfig()),
		"--manage-all-nodes=true", "--config="+stages, "--config="+config, "--node-ip=127.0.0.1", fmt.Sprintf("--node-port=%d", port),
		fmt.Sprintf("--server-address=127.0.0.1:%d", port), "--tls-cert-file="+certificate, "--tls-private-key-file="+key)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // an error: the process was killed
		if t.Failed() {
			t.Logf("kwok says:\n%s", out.String())
		}
	})
	planetest.Apply(t, p, "{apiVersion: v1, kind: Node, metadata: {name: node-1}}")
	client := planetest.Dynamic(t, p.Config())
	planetest.Eventually(t, time.Minute, "a kubelet on node-1", func(ctx context.Context) error {
		n, err := client.Resource(nodes).Get(ctx, "node-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(n.Object, "status", "daemonEndpoints", "kubeletEndpoint", "Port"); got != int64(port) {
			return fmt.Errorf("its port is %d", got)
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return func(line string) { _, _ = said.WriteString(stamp + line + "\n") }
}

// newPod creates a pod and waits until it runs on the node.
func newPod(t *testing.T, p *plane.Plane, namespace, name string) {
	t.Helper()
	planetest.Apply(t, p, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, labels: {app: web}}
spec: {nodeName: node-1, automountServiceAccountToken: false, containers: [{name: main, image: example.com/web, ports: [{containerPort: 80}]}]}`, name, namespace))
	client := planetest.Dynamic(t, p.Config())
	planetest.Eventually(t, time.Minute, "the pod runs", func(ctx context.Context) error {
		pod, err := client.Resource(pods).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); phase != "Running" {
			return errors.New("it is " + phase)
		}
		return nil
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
