// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

// certificate is a request for a certificate. The Secret that cert-manager writes for it has the label for the sync to
// the upstream.
const certificate = `
apiVersion: v1
kind: Namespace
metadata: {name: site}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self-signed, namespace: site, labels: {workloads.kcp.io/cluster: cluster-1}}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: site, namespace: site, labels: {workloads.kcp.io/cluster: cluster-1}}
spec:
  secretName: site-tls
  secretTemplate: {labels: {state.workload.kcp.io/cluster-1: Upsync}}
  dnsNames: [site.example.org]
  issuerRef: {name: self-signed, kind: Issuer}
  privateKey: {algorithm: ECDSA}
`

// An unmodified cert-manager runs in the cluster. A Certificate that is created upstream is issued in the cluster; its
// status and its Secret come back.
func TestCertManager(t *testing.T) {
	if os.Getenv("ATOLL_THIRDPARTY") == "" {
		t.Skip("ATOLL_THIRDPARTY is not set: the build of cert-manager takes minutes and downloads 130 modules")
	}
	programs, err := build.Programs(t.Context(), build.CertManager)
	require.NoError(t, err)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	w := newWorld(t, func(gr schema.GroupResource) bool { return gr == secrets.GroupResource() })
	definitions := certManagerTypes(t)
	planetest.Apply(t, w.cluster, definitions)
	planetest.Apply(t, w.upstream, definitions)
	process.Start(t, "cert-manager", nil, programs[build.CertManager], "--kubeconfig="+planetest.WriteKubeconfig(t, "cluster", w.cluster.Kubeconfig()),
		"--leader-elect=false", "--metrics-listen-address=127.0.0.1:0", "--v=1")
	planetest.Apply(t, w.upstream, certificate)

	certificates := schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	planetest.Eventually(t, long, "the Certificate is Ready upstream", func(ctx context.Context) error {
		obj, err := w.up.Dynamic().Resource(certificates).Namespace("site").Get(ctx, "site", metav1.GetOptions{})
		if err == nil && !holds(obj, "Ready") {
			err = fmt.Errorf("its status is %v", obj.Object["status"])
		}
		return err
	})
	planetest.Eventually(t, long, "the Secret is upstream", func(ctx context.Context) error {
		obj, err := w.up.Dynamic().Resource(secrets).Namespace("site").Get(ctx, "site-tls", metav1.GetOptions{})
		if err != nil {
			return err
		}
		data, _ := obj.Object["data"].(map[string]any)
		require.Equal(t, string(corev1.SecretTypeTLS), obj.Object["type"])
		require.NotEmpty(t, data[corev1.TLSCertKey])
		require.NotEmpty(t, data[corev1.TLSPrivateKeyKey])
		return nil
	})
	require.NoError(t, w.up.Dynamic().Resource(certificates).Namespace("site").Delete(t.Context(), "site", metav1.DeleteOptions{}))
	planetest.Eventually(t, long, "no Certificate is in the cluster", func(ctx context.Context) error {
		_, err := w.down.Dynamic().Resource(certificates).Namespace("site").Get(ctx, "site", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, or: %w", err)
	})
}

// certManagerTypes returns the CRDs of the pinned cert-manager. Its files are templates of a chart: the names in them
// are filled in.
func certManagerTypes(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/cert-manager/cert-manager")
	cmd.Dir = "../../programs/certmanager"
	output, err := cmd.Output()
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(output, &module))
	files, err := filepath.Glob(filepath.Join(module.Dir, "deploy", "crds", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 6)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.WriteString("---\n" + regexp.MustCompile(`'\{\{.*\}\}'`).ReplaceAllString(string(text), "cert-manager"))
	}
	return all.String()
}
