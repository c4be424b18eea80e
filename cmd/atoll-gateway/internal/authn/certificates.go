// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	gox509 "crypto/x509"
	"errors"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/x509"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/reload"
)

// clientCertificates authenticates by certificates that the authorities in a file have signed. The server must ask for
// certificates (tls.RequestClientCert) and need not check them.
func (a *Authenticator) clientCertificates(path string) (authenticator.Request, error) {
	var roots atomic.Pointer[gox509.CertPool]
	files, err := reload.New("authorities of client certificates", func(contents ...[]byte) error {
		pool := gox509.NewCertPool()
		if !pool.AppendCertsFromPEM(contents[0]) {
			return errors.New("the file holds no certificate in PEM")
		}
		roots.Store(pool)
		return nil
	}, path)
	if err != nil {
		return nil, err
	}
	a.running = append(a.running, files.Start)
	return x509.NewDynamic(func() (gox509.VerifyOptions, bool) {
		return gox509.VerifyOptions{Roots: roots.Load(), KeyUsages: []gox509.ExtKeyUsage{gox509.ExtKeyUsageClientAuth}}, true
	}, x509.CommonNameUserConversion), nil
}
