// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
)

const day = 24 * time.Hour

func keyOf(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// requestFor returns a request for the cluster of the target, as a Renewer makes it.
func requestFor(t *testing.T, target string, change func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return signedBy(t, keyOf(t), target, change)
}

func signedBy(t *testing.T, key crypto.Signer, target string, change func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: User(target), Organization: []string{Group}}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	require.NoError(t, err)
	r := &certificatesv1.CertificateSigningRequest{}
	r.Name, r.UID = "r", "request"
	r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	r.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	r.Spec.ExpirationSeconds = new(int32(3600))
	return r
}

// Each row changes one thing of a request that is accepted.
func TestCheckIsExact(t *testing.T) {
	t.Parallel()
	require.NoError(t, check(requestFor(t, "a", nil), "a", day))
	for _, kind := range []func() (crypto.Signer, error){
		func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err },
		func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
	} {
		key, err := kind()
		require.NoError(t, err)
		require.NoError(t, check(signedBy(t, key, "a", nil), "a", day))
	}
	short, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	require.ErrorContains(t, check(signedBy(t, short, "a", nil), "a", day), "too short")

	for want, change := range map[string]func(*x509.CertificateRequest){
		`asks for the user "atoll:cluster:b"`:    func(c *x509.CertificateRequest) { c.Subject.CommonName = User("b") },
		`asks for the user "system:admin"`:       func(c *x509.CertificateRequest) { c.Subject.CommonName = "system:admin" },
		`asks for the user "atoll:cluster:a "`:   func(c *x509.CertificateRequest) { c.Subject.CommonName = User("a ") },
		`asks for the groups ["system:masters"]`: func(c *x509.CertificateRequest) { c.Subject.Organization = []string{"system:masters"} },
		`"atoll:clusters" "system:masters"`:      func(c *x509.CertificateRequest) { c.Subject.Organization = []string{Group, "system:masters"} },
		"asks for the groups []":                 func(c *x509.CertificateRequest) { c.Subject.Organization = nil },
		"more than a common name":                func(c *x509.CertificateRequest) { c.Subject.OrganizationalUnit = []string{"x"} },
		"a common name and an organization": func(c *x509.CertificateRequest) {
			c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "x"}}
		},
		"alternative names: accepted: none":        func(c *x509.CertificateRequest) { c.DNSNames = []string{"kubernetes"} },
		"it asks for alternative names":            func(c *x509.CertificateRequest) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} },
		"asks for alternative names: accepted":     func(c *x509.CertificateRequest) { c.EmailAddresses = []string{"a@example.com"} },
		"it asks for alternative names: accepted:": func(c *x509.CertificateRequest) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} },
		"asks for extensions": func(c *x509.CertificateRequest) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
		},
	} {
		require.ErrorContains(t, check(requestFor(t, "a", change), "a", day), want)
	}
	for want, change := range map[string]func(*certificatesv1.CertificateSigningRequestSpec){
		"its usages are": func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
		},
		`usages are ["client auth"]`: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = s.Usages[1:] },
		"names no expirationSeconds": func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = nil },
		"its lifetime is 24h0m1s":    func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(86401)) },
		"its lifetime is 9m59s":      func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(599)) },
		"exactly one PEM block":      func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = append(s.Request, s.Request...) },
		"one PEM block":              func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = []byte("x") },
		"cannot be parsed": func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		},
		"signature is wrong": func(s *certificatesv1.CertificateSigningRequestSpec) {
			block, _ := pem.Decode(s.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			s.Request = pem.EncodeToMemory(block)
		},
	} {
		r := requestFor(t, "a", nil)
		change(&r.Spec)
		require.ErrorContains(t, check(r, "a", day), want)
	}
}

// TestJudge has each way of getting a certificate, and each reason to get none.
func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	const joiner, cluster = "system:serviceaccount:atoll-join:join-1", "atoll:cluster:a"
	type situation struct {
		requester, uid string
		groups         []string
		asks           string
		token          *token
		signer         string
		decided        certificatesv1.RequestConditionType
		signed         bool
	}
	fresh := func(used types.UID) *token {
		return &token{uid: "sa", target: "a", expires: now.Add(time.Minute), usedBy: used}
	}
	for name, c := range map[string]struct {
		situation
		action  action
		message string
	}{
		"a token is marked first":      {situation{requester: joiner, uid: "sa", asks: "a", token: fresh("")}, spend, ""},
		"then the request is approved": {situation{requester: joiner, uid: "sa", asks: "a", token: fresh("request")}, approve, "the SyncTarget a joins"},
		"a token is used once":         {situation{requester: joiner, uid: "sa", asks: "a", token: fresh("another")}, deny, "was used before"},
		"a token is for one name":      {situation{requester: joiner, uid: "sa", asks: "b", token: fresh("")}, deny, `asks for the user "atoll:cluster:b"`},
		"a used one, too":              {situation{requester: joiner, uid: "sa", asks: "b", token: fresh("request")}, deny, `asks for the user "atoll:cluster:b"`},
		"a token is unknown":           {situation{requester: joiner, uid: "sa", asks: "a"}, deny, "is not known"},
		"a namesake's token":           {situation{requester: joiner, uid: "older", asks: "a", token: fresh("")}, deny, "is not known"},
		"a token is late":              {situation{requester: joiner, uid: "sa", asks: "a", token: &token{uid: "sa", target: "a", expires: now}}, deny, "has expired at"},
		"a used token is late":         {situation{requester: joiner, uid: "sa", asks: "a", token: &token{uid: "sa", target: "a", expires: now, usedBy: "request"}}, deny, "has expired at"},
		"a token without a time":       {situation{requester: joiner, uid: "sa", asks: "a", token: &token{uid: "sa", target: "a"}}, deny, "has expired at"},
		"a token without a SyncTarget": {situation{requester: joiner, uid: "sa", asks: "gone", token: &token{uid: "sa", target: "gone", expires: now.Add(1)}}, deny, "SyncTarget gone does not exist"},
		"a certificate is renewed":     {situation{requester: cluster, groups: []string{Group, "system:authenticated"}, asks: "a"}, approve, "renews"},
		"another one's":                {situation{requester: cluster, groups: []string{Group}, asks: "b"}, deny, `asks for the user "atoll:cluster:b"`},
		"of a SyncTarget that is gone": {situation{requester: "atoll:cluster:gone", groups: []string{Group}, asks: "gone"}, deny, "does not exist"},
		"a user with such a name":      {situation{requester: cluster, groups: []string{"system:authenticated"}, asks: "a"}, ignore, ""},
		"a person":                     {situation{requester: "alice", groups: []string{Group}, asks: "a"}, ignore, ""},
		"another ServiceAccount":       {situation{requester: "system:serviceaccount:default:join-1", uid: "sa", asks: "a", token: fresh("")}, ignore, ""},
		"another signer":               {situation{requester: joiner, uid: "sa", asks: "a", token: fresh(""), signer: certificatesv1.KubeletServingSignerName}, ignore, ""},
		"an approved request":          {situation{requester: joiner, uid: "sa", asks: "a", token: fresh("another"), decided: certificatesv1.CertificateApproved}, ignore, ""},
		"a denied request":             {situation{requester: joiner, uid: "sa", asks: "a", token: fresh("request"), decided: certificatesv1.CertificateDenied}, ignore, ""},
		"a request with a certificate": {situation{requester: cluster, groups: []string{Group}, asks: "b", signed: true}, ignore, ""},
	} {
		r := requestFor(t, c.asks, nil)
		r.Spec.Username, r.Spec.UID, r.Spec.Groups = c.requester, c.uid, c.groups
		if c.signer != "" {
			r.Spec.SignerName = c.signer
		}
		if c.decided != "" {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: c.decided}}
		}
		if c.signed {
			r.Status.Certificate = []byte("x")
		}
		v := judge(observation{
			request: r, namespace: Namespace, token: c.token, now: now, longest: day,
			present: func(target string) bool { return target == "a" || target == "b" },
		})
		require.Equal(t, c.action, v.action, name)
		require.Contains(t, v.message, c.message, name)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	c := &certificate{begin, begin.Add(day)}
	for _, tt := range []struct {
		have  *certificate
		token []byte
		after time.Duration
		want  way
	}{
		{nil, nil, 0, stuck},
		{nil, []byte("x"), 0, enter},
		{c, nil, 0, rest},
		{c, []byte("x"), 14 * time.Hour, rest},
		{c, []byte("x"), 15 * time.Hour, renew},
		{c, nil, day - 1, renew},
		{c, nil, day, stuck},
		{c, []byte("x"), day, enter},
	} {
		require.Equal(t, tt.want, plan(situation{have: tt.have, token: tt.token}, begin.Add(tt.after), 0.6), "%+v", tt)
	}
}
