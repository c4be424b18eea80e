// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// signer plays the API server of an upstream with an Approver and a signer: it serves CertificateSigningRequests.
type signer struct {
	t      *testing.T
	server *httptest.Server
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey

	mu       sync.Mutex
	requests map[string]*certificatesv1.CertificateSigningRequest
	by       []string      // who created requests: the token, or the common name of the certificate
	decide   string        // approve, deny or wait
	age      time.Duration // of a certificate when it is issued
	life     time.Duration
	tokens   map[string]bool // that are accepted
	lose     int             // number of answers to creates that are lost
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{t: t, requests: map[string]*certificatesv1.CertificateSigningRequest{}, decide: "approve", life: time.Hour, tokens: map[string]bool{"token": true}}
	var err error
	s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(day), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key)
	require.NoError(t, err)
	s.ca, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	s.server = httptest.NewUnstartedServer(s)
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	s.server.TLS.ClientAuth = 1 // request a certificate
	t.Cleanup(s.server.Close)
	return s
}

// tokenFile returns a kubeconfig with a token, as NewToken makes it.
func (s *signer) tokenFile(token string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	text, err := kubeconfigOf(clientcmdv1.Cluster{Server: s.server.URL, CertificateAuthorityData: ca}, clientcmdv1.AuthInfo{Token: token})
	require.NoError(s.t, err)
	return text
}

func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.CommonName
	} else if !s.tokens[who] {
		s.answer(w, http.StatusUnauthorized, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: 401})
		return
	}
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, path), "/")
	if r.Method == http.MethodPost {
		var created certificatesv1.CertificateSigningRequest
		if err := json.NewDecoder(r.Body).Decode(&created); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		created.UID = types.UID(created.Name)
		s.requests[created.Name], s.by = &created, append(s.by, who)
		if s.lose > 0 {
			s.lose--
			panic(http.ErrAbortHandler)
		}
		s.answer(w, http.StatusCreated, created)
		return
	}
	found := s.requests[name]
	if found == nil {
		s.answer(w, http.StatusNotFound, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404,
			Details: &metav1.StatusDetails{Group: "certificates.k8s.io", Kind: "certificatesigningrequests", Name: name}})
		return
	}
	switch s.decide {
	case "approve":
		found.Status.Certificate = s.sign(found)
	case "deny":
		found.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Message: "the token was used before"}}
	}
	s.answer(w, http.StatusOK, found)
}

func (s *signer) answer(w http.ResponseWriter, code int, body any) {
	if r, ok := body.(certificatesv1.CertificateSigningRequest); ok {
		r.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
		body = r
	}
	if st, ok := body.(metav1.Status); ok {
		st.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body = st
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *signer) sign(r *certificatesv1.CertificateSigningRequest) []byte {
	block, _ := pem.Decode(r.Spec.Request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	begin := time.Now().Add(-s.age)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: csr.Subject.CommonName, Organization: csr.Subject.Organization},
		NotBefore: begin, NotAfter: begin.Add(s.life),
	}, s.ca, csr.PublicKey, s.key)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (s *signer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// created returns who has created requests.
func (s *signer) created() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.by...)
}
