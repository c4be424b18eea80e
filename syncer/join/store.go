// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/atomicfile"
)

// pending is a request that is under way, kept in a file beside the certificate until it is decided.
type pending struct {
	Name  string `json:"name"`  // of the CertificateSigningRequest
	Token string `json:"token"` // digest of the kubeconfig with which it was made
	Key   []byte `json:"key"`   // in PEM
}

func (r *Renewer) pendingFile() string { return r.opts.File + ".pending" }

// observe reads the files.
func (r *Renewer) observe() (situation, error) {
	var s situation
	var err error
	if s.file, err = readIfPresent(r.opts.File); err != nil {
		return s, err
	}
	if s.file != nil {
		s.have = r.certificateIn(s.file) // an unusable file is as none
	}
	if r.opts.Token != "" {
		if s.token, err = readIfPresent(r.opts.Token); err != nil {
			return s, err
		}
		if s.token != nil && digest(s.token) == r.refused {
			s.token = nil
		}
	}
	text, err := readIfPresent(r.pendingFile())
	if err != nil || text == nil {
		return s, err
	}
	var p pending
	if json.Unmarshal(text, &p) == nil && p.Name != "" {
		s.pending = &p
	}
	return s, nil
}

// certificateIn returns the certificate in a kubeconfig, or nil if it has none for the user of this cluster.
func (r *Renewer) certificateIn(kubeconfig []byte) *certificate {
	var k clientcmdv1.Config
	if yaml.Unmarshal(kubeconfig, &k) != nil || len(k.AuthInfos) != 1 || len(k.Clusters) != 1 {
		return nil
	}
	leaf, err := leafOf(k.AuthInfos[0].AuthInfo.ClientCertificateData, k.AuthInfos[0].AuthInfo.ClientKeyData)
	if err != nil || leaf.Subject.CommonName != User(r.opts.Target) {
		return nil
	}
	return &certificate{leaf.NotBefore, leaf.NotAfter}
}

// leafOf returns the certificate of a pair, or an error if the key is not that of the certificate.
func leafOf(certificate, key []byte) (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(pair.Certificate[0])
}

func readIfPresent(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func digest(data []byte) string {
	sum := sha256.Sum256(bytes.TrimSpace(data))
	return hex.EncodeToString(sum[:])
}

// newPending makes a key and stores it. The name of the request follows from the key, so that a repeated create of the
// request is recognized.
func (r *Renewer) newPending(with []byte) (*pending, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	p := &pending{
		Name:  fmt.Sprintf("atoll-%s", digest(der)[:20]),
		Token: digest(with), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return p, atomicfile.Replace(r.pendingFile(), text)
}

func (r *Renewer) drop() error {
	err := os.Remove(r.pendingFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// keep writes the kubeconfig with the certificate, for the cluster of the kubeconfig with which the request was made.
func (r *Renewer) keep(with, certificate, key []byte) error {
	var k clientcmdv1.Config
	if err := yaml.Unmarshal(with, &k); err != nil || len(k.Clusters) != 1 {
		return errors.New("the kubeconfig has not exactly one cluster")
	}
	text, err := kubeconfigOf(k.Clusters[0].Cluster, clientcmdv1.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	if err != nil {
		return err
	}
	return atomicfile.Replace(r.opts.File, text)
}
