// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cause is the class of a failed request to a peer, as text for a message. CauseOf determines it.
type Cause string

// The causes that CauseOf returns.
const (
	// CauseUnknown is every other failure: a normal response such as NotFound, an invalid request, or a request that
	// its caller canceled.
	CauseUnknown Cause = ""
	// CauseDNS: the host name of the API server was not resolved.
	CauseDNS Cause = "DNS lookup failed"
	// CauseRefused: nothing listens at the API server's address.
	CauseRefused Cause = "connection refused"
	// CauseNoRoute: the network has no route to the API server.
	CauseNoRoute Cause = "no route to host"
	// CauseConnectTimeout: the time ran out before a connection was established, so nothing was sent.
	CauseConnectTimeout Cause = "no connection in time"
	// CauseLost: the connection broke before the response was complete.
	CauseLost Cause = "connection lost"
	// CauseUnknownAuthority: the API server's certificate is not signed by the CA in the kubeconfig.
	CauseUnknownAuthority Cause = "certificate signed by unknown authority"
	// CauseExpired: the API server's certificate has expired, or is not valid yet.
	CauseExpired Cause = "certificate has expired or is not yet valid"
	// CauseOtherHost: the API server's certificate is for another host name.
	CauseOtherHost Cause = "certificate is of another host"
	// CauseTLS: the TLS handshake failed for another reason.
	CauseTLS Cause = "TLS handshake failed"
	// CauseTimeout: the API server accepted the connection and did not respond in time, for example because it is
	// frozen.
	CauseTimeout Cause = "no answer in time"
	// CauseWriteTimeout: the API server did not respond to a write in time, and responded to a later read.
	CauseWriteTimeout Cause = "no answer to the write in time, while reads are answered"
	// CauseServerTimeout: the API server responded that it could not complete the request in time.
	CauseServerTimeout Cause = "the API server did not complete the request in time"
	// CauseWebhookTimeout: an admission webhook did not respond to the API server in time; the message names the
	// webhook.
	CauseWebhookTimeout Cause = "admission webhook timed out"
	// CauseWebhook: the API server could not call an admission webhook; the message names the webhook.
	CauseWebhook Cause = "admission webhook failed"
	// CauseDenied: an admission webhook, policy or quota denied the request, or the object's namespace is being
	// deleted.
	CauseDenied Cause = "denied by admission"
	// CauseUnauthorized: the API server rejected the credentials (401).
	CauseUnauthorized Cause = "credentials rejected"
	// CauseForbidden: the credentials lack a right (403); the message names it.
	CauseForbidden Cause = "right is missing"
	// CauseThrottled: the API server has too many requests (429).
	CauseThrottled Cause = "throttled"
	// CauseServer: the API server failed (5xx).
	CauseServer Cause = "server error"
	// CauseNotServed: the API server does not serve the type.
	CauseNotServed Cause = "type is not served"
	// CauseOtherCluster: the credentials reach another cluster than the peer's.
	CauseOtherCluster Cause = "wrong cluster"
)

// Remedy returns what a person can do about the cause; empty for CauseUnknown.
func (c Cause) Remedy() string { return remedies[c] }

var remedies = map[Cause]string{
	CauseDNS:              "check the server's host name in the kubeconfig, and the resolver",
	CauseRefused:          "check that the API server runs, and its address in the kubeconfig",
	CauseNoRoute:          "check the network, and the server's address in the kubeconfig",
	CauseConnectTimeout:   "check the network, and the server's address in the kubeconfig",
	CauseLost:             "check whether the API server, or a proxy before it, restarts",
	CauseUnknownAuthority: "correct the certificate authority in the kubeconfig",
	CauseExpired:          "renew the API server's certificate, or correct the clock",
	CauseOtherHost:        "correct the server's address or tls-server-name in the kubeconfig",
	CauseTLS:              "check the server's address and the certificates in the kubeconfig",
	CauseTimeout:          "check whether the API server is frozen or overloaded",
	CauseWriteTimeout:     "check the API server's admission webhooks, and its storage",
	CauseServerTimeout:    "check the API server's admission webhooks, and its storage",
	CauseWebhookTimeout:   "repair that webhook, or remove its configuration",
	CauseWebhook:          "repair that webhook, or remove its configuration",
	CauseDenied:           "correct the object, or the policy that denies it",
	CauseUnauthorized:     "renew the credentials in the kubeconfig",
	CauseForbidden:        "grant that right",
	CauseThrottled:        "try again later, or raise the API server's limits for this user",
	CauseServer:           "check the API server's log and its storage",
	CauseNotServed:        "install its CRD there",
	CauseOtherCluster:     "correct the credentials or the peer's name",
}

// CauseOf returns why a request to a peer failed. err comes from a client of a Conn, or from net or crypto/tls, and may
// be wrapped. CauseOf does no I/O.
func CauseOf(err error) Cause {
	if err == nil {
		return CauseUnknown
	}
	if d, ok := errors.AsType[*Diagnosis](err); ok {
		return d.Cause
	}
	if errors.Is(err, ErrOtherCluster) || errors.Is(err, ErrSameCluster) {
		return CauseOtherCluster
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return causeOfStatus(err, status.Status())
	}
	if meta.IsNoMatchError(err) {
		return CauseNotServed
	}
	// client-go retries a read after a broken connection. If the time then runs out, the broken connection is the
	// cause.
	again := strings.Contains(err.Error(), "error from a previous attempt") && lost(err)
	if t, ok := errors.AsType[*timeout](err); ok && !again {
		return t.cause
	}
	if cause := causeOfTLS(err); cause != CauseUnknown {
		return cause
	}
	return causeOfNet(err)
}

func causeOfNet(err error) Cause {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return CauseDNS
	}
	op, dialed := errors.AsType[*net.OpError](err)
	dialed = dialed && op.Op == "dial"
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return CauseRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return CauseNoRoute
	case dialed && op.Timeout():
		return CauseConnectTimeout
	case strings.Contains(err.Error(), "TLS handshake timeout"): // an untyped error of net/http
		return CauseTimeout
	case lost(err):
		return CauseLost
	default:
		return CauseUnknown
	}
}

func lost(err error) bool {
	for _, target := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, target) {
			return true
		}
	}
	// Errors without a type: of net/http, and of client-go about an earlier attempt.
	for _, text := range []string{"connection reset by peer", "http2: client connection lost", "http2: client conn could not be established", "http2: server sent GOAWAY", "stream error:", "server closed idle connection"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func causeOfTLS(err error) Cause {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return CauseUnknownAuthority
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return CauseOtherHost
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return CauseExpired
	}
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	op, remote := errors.AsType[*net.OpError](err)
	if verification || record || remote && op.Op == "remote error" || errors.Is(err, http.ErrSchemeMismatch) {
		return CauseTLS
	}
	return CauseUnknown
}

// causeOfStatus classifies an error response of the API server. Failures of webhooks and policies have no reason of
// their own, only a message.
func causeOfStatus(err error, status metav1.Status) Cause {
	text := status.Message
	switch {
	case strings.Contains(text, "failed calling webhook"):
		if strings.Contains(text, "deadline exceeded") || strings.Contains(text, "imeout") {
			return CauseWebhookTimeout
		}
		return CauseWebhook
	case strings.Contains(text, "denied the request"), strings.Contains(text, "denied request"), strings.Contains(text, "exceeded quota"),
		apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return CauseDenied
	case status.Code == http.StatusUnauthorized:
		return CauseUnauthorized
	case status.Code == http.StatusForbidden:
		return CauseForbidden
	case status.Code == http.StatusTooManyRequests:
		return CauseThrottled
	case status.Code == http.StatusNotFound && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return CauseNotServed
	case status.Code == http.StatusGatewayTimeout, status.Code == http.StatusRequestTimeout:
		return CauseServerTimeout
	case status.Code >= http.StatusInternalServerError:
		return CauseServer
	default:
		return CauseUnknown
	}
}
