// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// files are the files of the configuration, by name. DIR is the folder.
var files = map[string]string{
	"gateway.yaml": `apiVersion: gateway.atoll.dev/v1alpha1
kind: GatewayConfiguration
serving: {address: "127.0.0.1:0", certificateFile: DIR/tls.crt, keyFile: DIR/tls.key}
health: {address: "127.0.0.1:0"}
source: {file: DIR/peers.yaml}
authentication: {tokenFile: {file: DIR/tokens.csv}}
operators: {group: ops}
drain: {delay: 0s}
`,
	"tokens.csv": "alice,alice,1,dev\nbob,bob,2,ops\n",
	"peers.yaml": `peers:
- {name: eu-west, kubeconfig: eu-west.kubeconfig, regions: [eu-west-1.loodse]}
- {name: us-east, kubeconfig: us-east.kubeconfig, regions: [us-east-1.loodse]}
`,
}

// prepare starts two API servers in memory, and writes the files of a gateway before them. stop stops the servers.
func prepare(ctx context.Context, dir string) (stop func(), err error) {
	var servers []*regiontest.Server
	stop = func() {
		for _, server := range servers {
			server.Close()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"eu-west", "us-east"} {
		server := regiontest.NewServer(regiontest.Options{Name: name})
		servers = append(servers, server)
		kubeconfig, err := server.Listen(ctx)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".kubeconfig"), kubeconfig, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return stop, certify(dir)
}

// certify writes a certificate for 127.0.0.1 that is valid for a day, and its key.
func certify(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "gateway"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	write := func(name, kind string, data []byte) error {
		return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600)
	}
	return errors.Join(write("tls.crt", "CERTIFICATE", certificate), write("tls.key", "PRIVATE KEY", secret))
}

// explain prints how to use the gateway.
func explain(stdout io.Writer, address, dir string) {
	for _, path := range []string{"/regions/*", "/regions/eu-west-1.loodse", "/regions/us-east-1.loodse"} {
		_, _ = fmt.Fprintf(stdout, "kubectl '--server=https://%s%s' --certificate-authority=%s --token=alice get namespaces\n", address, path, filepath.Join(dir, "tls.crt"))
	}
}
