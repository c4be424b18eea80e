// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// lifetime is how long certificates are valid: so long that no program warns of their end.
const lifetime = 365 * 24 * time.Hour

// Listen serves TLS on a free port of 127.0.0.1 until ctx ends or Close is called. It returns a kubeconfig for this
// port, with a client certificate of the user system:admin, group system:masters. Each call opens another listener with
// its own CA. The server takes the user of a client from a certificate of this CA, if the client presents one. Close
// waits for the listeners.
func (s *Server) Listen(ctx context.Context) (kubeconfig []byte, err error) {
	authority, err := newAuthority(s.opts.Name)
	if err != nil {
		return nil, fmt.Errorf("regiontest: %s: listen: %w", s.opts.Name, err)
	}
	serving, err := authority.issue(pkix.Name{CommonName: "127.0.0.1"}, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, fmt.Errorf("regiontest: %s: listen: %w", s.opts.Name, err)
	}
	admin, err := authority.issue(pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, fmt.Errorf("regiontest: %s: listen: %w", s.opts.Name, err)
	}
	pair, err := tls.X509KeyPair(serving.cert, serving.key)
	if err != nil {
		return nil, fmt.Errorf("regiontest: %s: listen: %w", s.opts.Name, err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("regiontest: %s: listen: %w", s.opts.Name, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.cert)
	s.open(ctx, listener, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
	})
	return authority.kubeconfig(s.opts.Name, listener.Addr().String(), admin)
}

// open starts to serve on listener, and returns. It serves until ctx ends or the server is closed.
func (s *Server) open(ctx context.Context, listener net.Listener, config *tls.Config) {
	web := &http.Server{
		Handler: s, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:    log.New(io.Discard, "", 0), // tests provoke failing handshakes
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	s.late.Go(func() { _ = web.ServeTLS(listener, "", "") }) // ends with http.ErrServerClosed
	s.late.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.closed:
		}
		_ = web.Close()
	})
}

// authority issues the certificates of one listener.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// identity is a certificate with its key, in PEM.
type identity struct{ cert, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name + "-ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

func (a *authority) issue(subject pkix.Name, usage x509.ExtKeyUsage) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return identity{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return identity{}, err
	}
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	return identity{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes}),
	}, nil
}

func (a *authority) kubeconfig(name, address string, user identity) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: a.pem}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: user.cert, ClientKeyData: user.key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
