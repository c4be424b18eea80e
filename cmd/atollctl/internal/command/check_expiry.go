// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	certificateNotice = 7 * 24 * time.Hour
	tokenNotice       = 10 * time.Minute

	clientCertificate = "client certificate"
	bearerToken       = "bearer token"
	serverCertificate = "certificate of the API server"
	plugin            = "credential plugin"
)

// term is how long a certificate or token is valid. It holds nothing secret.
type term struct {
	what  string
	until time.Time // zero: not known
}

// observeTerms returns the terms of the credentials of a configuration. It reads the files that the
// configuration names, as each request does.
func observeTerms(config *rest.Config) []term {
	var terms []term
	certificate := config.CertData
	if len(certificate) == 0 && config.CertFile != "" {
		certificate, _ = os.ReadFile(config.CertFile)
	}
	if len(certificate) > 0 {
		terms = append(terms, term{clientCertificate, endOfCertificate(certificate)})
	}
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		if data, err := os.ReadFile(config.BearerTokenFile); err == nil {
			token = strings.TrimSpace(string(data))
		}
	}
	if token != "" {
		terms = append(terms, term{bearerToken, endOfToken(token)})
	}
	if config.ExecProvider != nil {
		terms = append(terms, term{what: plugin})
	}
	return terms
}

// endOfCertificate returns the end of the first certificate in PEM, or zero.
func endOfCertificate(data []byte) time.Time {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			return certificate.NotAfter
		}
	}
	return time.Time{}
}

// endOfToken returns the claim exp of a JWT, whose signature only the API server can verify; zero for
// other tokens.
func endOfToken(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Exp <= 0 || claims.Exp > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}

func judgeTerm(t term, now time.Time) finding {
	notice, in, remedy := certificateNotice, "7 days", "renew the client certificate in the kubeconfig"
	switch t.what {
	case plugin:
		return passed(checkExpiry, "a credential plugin provides and renews the credentials")
	case bearerToken:
		notice, in, remedy = tokenNotice, "10 minutes", "renew the token in the kubeconfig"
	case serverCertificate:
		remedy = "renew the API server's certificate"
	}
	until := t.until.UTC().Format(time.RFC3339)
	switch left := t.until.Sub(now); {
	case t.until.IsZero():
		return passed(checkExpiry, "%s: it does not show when it expires", t.what)
	case left <= 0:
		return failed(checkExpiry, remedy, "%s: expired at %s", t.what, until)
	case left < notice:
		return warned(checkExpiry, remedy, "%s: expires at %s, in less than %s", t.what, until, in)
	}
	return passed(checkExpiry, "%s: valid until %s", t.what, until)
}
