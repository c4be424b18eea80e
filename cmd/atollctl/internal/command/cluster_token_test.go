// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// upstreamWith starts a server that answers requests for a token with the given code, and returns a kubeconfig for it.
func upstreamWith(t *testing.T, code int) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if code != 0 {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": http.StatusText(code), "message": "no"})
			return
		}
		answer := map[string]any{"kind": "ServiceAccount", "apiVersion": "v1", "metadata": map[string]any{"name": "join"}}
		if strings.HasSuffix(r.URL.Path, "/token") {
			answer = map[string]any{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"token": "secret-token"}}
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	config.CurrentContext = "a"
	data, err := clientcmd.Write(*config)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "upstream.kubeconfig")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// A token is printed as a kubeconfig. If the upstream makes no token, the remedy fits the answer of the upstream.
func TestClusterToken(t *testing.T) {
	for _, tt := range []struct {
		answer, code int
		args         []string
		out, errOut  string
	}{
		{code: 0, out: "secret-token"},
		{answer: http.StatusNotFound, code: exitInput, errOut: "atollctl cluster manifests"},
		{answer: http.StatusForbidden, code: exitInput, errOut: "grant create of serviceaccounts"},
		{code: exitInput, args: []string{"--lifetime=1s"}, errOut: "see atollctl cluster token --help"},
	} {
		var out, errOut bytes.Buffer
		args := append([]string{"atollctl", "cluster", "token", "edge", "--upstream", upstreamWith(t, tt.answer)}, tt.args...)
		require.Equal(t, tt.code, Run(t.Context(), args, strings.NewReader(""), &out, &errOut), "%s", &errOut)
		require.Contains(t, out.String(), tt.out)
		require.Contains(t, errOut.String(), tt.errOut)
	}
}
