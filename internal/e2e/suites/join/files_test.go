// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}

// leaf returns the certificate in a kubeconfig.
func leaf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	var k clientcmdv1.Config
	require.NoError(t, yaml.Unmarshal(read(t, file), &k))
	block, _ := pem.Decode(k.AuthInfos[0].AuthInfo.ClientCertificateData)
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}
