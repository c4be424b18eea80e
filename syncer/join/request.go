// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// decode returns the CertificateSigningRequest in obj.
func decode(obj *unstructured.Unstructured) (*certificatesv1.CertificateSigningRequest, error) {
	var r certificatesv1.CertificateSigningRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// isDecided reports whether a request was approved, denied or failed.
func isDecided(r *certificatesv1.CertificateSigningRequest) bool {
	return len(r.Status.Conditions) > 0 || len(r.Status.Certificate) > 0
}

// shortest is the shortest lifetime of a certificate: the least that signers accept.
const shortest = 10 * time.Minute

// check returns why the request is not exactly for the client certificate of the target's cluster, or nil.
func check(r *certificatesv1.CertificateSigningRequest, target string, longest time.Duration) error {
	usages := slices.Sorted(slices.Values(r.Spec.Usages))
	if !slices.Equal(usages, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}) {
		return fmt.Errorf("its usages are %q: accepted: client auth and digital signature", usages)
	}
	if r.Spec.ExpirationSeconds == nil {
		return fmt.Errorf("it names no expirationSeconds: accepted: %v to %v", shortest, longest)
	}
	if lifetime := time.Duration(*r.Spec.ExpirationSeconds) * time.Second; lifetime < shortest || lifetime > longest {
		return fmt.Errorf("its lifetime is %v: accepted: %v to %v", lifetime, shortest, longest)
	}
	block, rest := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 || len(block.Headers) > 0 {
		return errors.New("it has not exactly one PEM block CERTIFICATE REQUEST")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return errors.New("it cannot be parsed")
	}
	if err := csr.CheckSignature(); err != nil {
		return errors.New("its signature is wrong")
	}
	return checkContent(csr, target)
}

// checkContent compares the names in a request, and its key, with those of the target's cluster.
func checkContent(csr *x509.CertificateRequest, target string) error {
	if csr.Subject.CommonName != User(target) {
		return fmt.Errorf("it asks for the user %q: accepted: %q", csr.Subject.CommonName, User(target))
	}
	if !slices.Equal(csr.Subject.Organization, []string{Group}) {
		return fmt.Errorf("it asks for the groups %q: accepted: %q", csr.Subject.Organization, Group)
	}
	if len(csr.Subject.Names) != 2 {
		return errors.New("its subject has more than a common name and an organization")
	}
	if len(csr.DNSNames)+len(csr.EmailAddresses)+len(csr.IPAddresses)+len(csr.URIs) > 0 {
		return errors.New("it asks for alternative names: accepted: none")
	}
	if len(csr.Extensions) > 0 {
		return errors.New("it asks for extensions: accepted: none")
	}
	switch key := csr.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize < 256 {
			return errors.New("its key is too short: accepted: ECDSA with 256 bits or more, RSA with 2048 bits or more, Ed25519")
		}
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return errors.New("its key is too short: accepted: ECDSA with 256 bits or more, RSA with 2048 bits or more, Ed25519")
		}
	case ed25519.PublicKey:
	default:
		return errors.New("its key is of an unknown kind: accepted: ECDSA, RSA, Ed25519")
	}
	return nil
}
