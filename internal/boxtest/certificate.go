// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package boxtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// certify makes a self-signed certificate.
func certify() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "box"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// kubeconfigFor returns a kubeconfig for clients of a box. Its token is arbitrary: the box does not
// check it.
func kubeconfigFor(address string, authority []byte) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["box"] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: authority}
	config.AuthInfos["box"] = &clientcmdapi.AuthInfo{Token: "box"}
	config.Contexts["box"] = &clientcmdapi.Context{Cluster: "box", AuthInfo: "box"}
	config.CurrentContext = "box"
	return clientcmd.Write(*config)
}
