// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"
)

// certificate is the gateway's serving certificate, and the path of the authority for clients.
type certificate struct {
	pair tls.Certificate
	path string
}

// certificateOf reads the files of the flags -cert and -key. Without these flags it makes a
// self-signed certificate that is valid for a day.
func certificateOf(o options) (*certificate, error) {
	if (o.certificate == "") != (o.key == "") {
		return nil, errors.New("-cert and -key are given together")
	}
	if o.certificate != "" {
		pair, err := tls.LoadX509KeyPair(o.certificate, o.key)
		return &certificate{pair: pair, path: o.certificate}, err
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "gateway"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"localhost"},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else if host != "" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "gateway-*.crt")
	if err != nil {
		return nil, err
	}
	err = pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &certificate{pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path: file.Name()}, errors.Join(err, file.Close())
}
