// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/region"
)

// ErrDenied means that a request was denied. Make a new token ("atollctl cluster token"), and join again with it.
var ErrDenied = errors.New("the request was denied")

// obtain gets a certificate and stores it. The result expires is the time at which the certificate expires.
func (r *Renewer) obtain(ctx context.Context, s situation, way way) (expires time.Time, err error) {
	with := s.token
	switch way {
	case renew:
		with = s.file
	case stuck:
		if r.refused != "" {
			return time.Time{}, fmt.Errorf("the token was denied: make a new one (atollctl cluster token %s), and put it at %s", r.opts.Target, r.opts.Token)
		}
		return time.Time{}, fmt.Errorf("there is no token and no certificate that is valid: make a token (atollctl cluster token %s), and put it at %s", r.opts.Target, r.opts.Token)
	}
	credentials, err := region.ParseKubeconfig(with, region.Trust{})
	if err != nil {
		return time.Time{}, err
	}
	conn, err := region.NewConn(region.Peer{Name: "upstream", Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Close()
	client := conn.Dynamic().Resource(requests)

	p := s.pending
	if p == nil || p.Token != digest(with) {
		if p, err = r.newPending(with); err != nil {
			return time.Time{}, fmt.Errorf("store the key: %w", err)
		}
	}
	signed, err := r.signed(ctx, client, p)
	if errors.Is(err, ErrDenied) || errors.Is(err, errGone) {
		if errors.Is(err, ErrDenied) && way == enter {
			r.refused = digest(with)
		}
		return time.Time{}, errors.Join(err, r.drop())
	}
	if apierrors.IsUnauthorized(err) && way == enter {
		return time.Time{}, fmt.Errorf("the token has expired, or was withdrawn: make a new one (atollctl cluster token %s): %w", r.opts.Target, err)
	}
	if err != nil {
		return time.Time{}, err
	}
	leaf, err := leafOf(signed, p.Key)
	if err != nil {
		return time.Time{}, errors.Join(fmt.Errorf("the certificate of the request %s is of no use: %w", p.Name, err), r.drop())
	}
	if err := r.keep(with, signed, p.Key); err != nil {
		return time.Time{}, fmt.Errorf("write %s: %w", r.opts.File, err)
	}
	return leaf.NotAfter, r.drop()
}

// errGone means that a request was deleted before it was signed.
var errGone = errors.New("the request was deleted before it was signed")

// signed creates the request, if it does not exist, and waits for its certificate.
func (r *Renewer) signed(ctx context.Context, client dynamic.ResourceInterface, p *pending) ([]byte, error) {
	obj, err := client.Get(ctx, p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		var manifest *unstructured.Unstructured
		if manifest, err = r.manifest(p); err != nil {
			return nil, err
		}
		obj, err = client.Create(ctx, manifest, metav1.CreateOptions{FieldManager: fieldManager})
	}
	for {
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("%w: %s", errGone, p.Name)
		case err != nil:
			return nil, fmt.Errorf("request %s: %w", p.Name, err)
		}
		if signed, err := outcome(obj); signed != nil || err != nil {
			return signed, err
		}
		if !backoff.Sleep(ctx, r.opts.Poll) {
			return nil, fmt.Errorf("request %s is not decided yet: %w", p.Name, ctx.Err())
		}
		obj, err = client.Get(ctx, p.Name, metav1.GetOptions{})
	}
}

// outcome returns the certificate of a request, an error if it was denied, or neither.
func outcome(obj *unstructured.Unstructured) ([]byte, error) {
	request, err := decode(obj)
	if err != nil {
		return nil, err
	}
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return nil, fmt.Errorf("%w (%s): %s", ErrDenied, request.Name, c.Message)
		}
	}
	if len(request.Status.Certificate) > 0 {
		return request.Status.Certificate, nil
	}
	return nil, nil
}

// manifest returns the request for the key of p.
func (r *Renewer) manifest(p *pending) (*unstructured.Unstructured, error) {
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("the stored key is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the stored key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the stored key cannot sign")
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: User(r.opts.Target), Organization: []string{Group}},
	}, signer)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: new(int32(r.opts.Lifetime.Seconds())), Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	})
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}
