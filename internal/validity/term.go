// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package validity

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

// Kind is the kind of a credential, for messages.
type Kind string

// The kinds of the credentials that a configuration can have.
const (
	Certificate Kind = "client certificate"
	Token       Kind = "bearer token"
	Plugin      Kind = "credential plugin"
)

// Term is the time in which a credential is valid. It holds nothing secret.
type Term struct {
	Kind     Kind
	From, To time.Time // each zero if not known
}

// Of returns one Term for each credential of a configuration. It reads the files of the configuration at each call. A
// certificate file that cannot be read has no Term; instead of a token file that cannot be read, BearerToken counts. A
// credential plugin is not run, so its times are not known.
func Of(config *rest.Config) []Term {
	var terms []Term
	certificate := config.CertData
	if len(certificate) == 0 && config.CertFile != "" {
		certificate, _ = os.ReadFile(config.CertFile)
	}
	if len(certificate) > 0 {
		terms = append(terms, ofCertificate(certificate))
	}
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		if data, err := os.ReadFile(config.BearerTokenFile); err == nil {
			token = strings.TrimSpace(string(data))
		}
	}
	if token != "" {
		terms = append(terms, ofToken(token))
	}
	if config.ExecProvider != nil {
		terms = append(terms, Term{Kind: Plugin})
	}
	return terms
}

// First returns the Term that ends first; the zero value if no end is known.
func First(terms []Term) Term {
	var first Term
	for _, t := range terms {
		if !t.To.IsZero() && (first.To.IsZero() || t.To.Before(first.To)) {
			first = t
		}
	}
	return first
}

// ofCertificate returns the Term of the first certificate in PEM data.
func ofCertificate(data []byte) Term {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			return Term{Certificate, c.NotBefore, c.NotAfter}
		}
	}
	return Term{Kind: Certificate}
}

// ofToken returns the Term of a token from the claims iat and exp, if the token is a JWT. It does not verify the signature,
// which only the API server can do.
func ofToken(token string) Term {
	unknown := Term{Kind: Token}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return unknown
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return unknown
	}
	var claims struct {
		Iat float64 `json:"iat"`
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return unknown
	}
	return Term{Token, second(claims.Iat), second(claims.Exp)}
}

// second converts a claim in seconds since 1970 to a time. It returns the zero time if the claim is missing or implausible.
func second(claim float64) time.Time {
	if claim <= 0 || claim > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(claim), 0)
}
