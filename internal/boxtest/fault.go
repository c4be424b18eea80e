// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package boxtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is a fault that a request can meet.
type Fault struct {
	name  string
	alone bool // waits until its connection has no other request
	do    func(*exchange)
}

// String returns the name of the fault.
func (f Fault) String() string { return f.name }

// DropRequest resets the stream and does not forward the request.
func DropRequest() Fault {
	return Fault{name: "request dropped", do: func(*exchange) { panic(http.ErrAbortHandler) }}
}

// DropReply forwards the request and resets the stream instead of answering.
func DropReply() Fault {
	return Fault{name: "reply dropped", do: func(x *exchange) {
		x.pass()
		panic(http.ErrAbortHandler)
	}}
}

// Cut resets the connection and does not forward the request.
func Cut() Fault {
	return Fault{name: "connection reset before", do: func(x *exchange) { x.cut() }}
}

// CutReply forwards the request and resets the connection after half of the answer.
func CutReply() Fault {
	return Fault{name: "connection reset mid-reply", do: func(x *exchange) {
		a := x.pass()
		if a.err != nil || len(a.body) < 2 {
			x.cut()
		}
		x.w.Header().Set("Content-Type", a.header.Get("Content-Type"))
		x.w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
		x.w.WriteHeader(a.status)
		_, _ = x.w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(x.w).Flush()
		x.cut()
	}}
}

// Timeout answers 504 as an API server does, and does not forward the request.
func Timeout() Fault {
	return Fault{name: "504, not applied", do: func(x *exchange) { x.timeout() }}
}

// TimeoutThen answers 504 and forwards the request after the given time.
func TimeoutThen(after time.Duration) Fault {
	return Fault{name: "504, applied soon", do: func(x *exchange) {
		x.box.running.Go(func() {
			time.Sleep(after) // a real server takes arbitrarily long
			x.pass()
		})
		x.timeout()
	}}
}

// TimeoutLate answers 504 and forwards the request when Release is called.
func TimeoutLate() Fault {
	return Fault{name: "504, applied later", do: func(x *exchange) {
		x.box.mu.Lock()
		x.box.late = append(x.box.late, func() { x.pass() })
		x.box.mu.Unlock()
		x.timeout()
	}}
}

// GatewayTimeout forwards the request and answers 504 in HTML, as a load balancer before an API
// server does.
func GatewayTimeout() Fault {
	return Fault{name: "504 of a load balancer, applied", do: func(x *exchange) {
		x.pass()
		x.w.Header().Set("Content-Type", "text/html")
		x.w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = x.w.Write([]byte("<html><body><h1>504 Gateway Time-out</h1></body></html>"))
	}}
}

// ErrorAfter forwards the request and answers 500 with Retry-After.
func ErrorAfter() Fault {
	return Fault{name: "500 with Retry-After, applied", do: func(x *exchange) {
		x.pass()
		x.w.Header().Set("Retry-After", "1")
		x.status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out")
	}}
}

// TooMany answers 429 with Retry-After and does not forward the request.
func TooMany() Fault {
	return Fault{name: "429 with Retry-After", do: func(x *exchange) {
		x.w.Header().Set("Retry-After", "1")
		x.status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later")
	}}
}

// GoAway forwards the request, sends the answer and then GOAWAY, as kube-apiserver does with
// --goaway-chance.
func GoAway() Fault {
	return Fault{name: "GOAWAY after the reply", do: func(x *exchange) {
		a := x.pass()
		x.w.Header().Set("Connection", "close")
		x.answer(a)
	}}
}

// GoAwayLost forwards the request, sends a GOAWAY that declares the request processed, and closes
// the connection without an answer.
func GoAwayLost() Fault {
	return Fault{name: "GOAWAY instead of the reply", do: func(x *exchange) {
		x.pass()
		x.conn.goAway(1<<31 - 1)
		_ = x.conn.Close()
		panic(http.ErrAbortHandler)
	}}
}

// GoAwayBefore does not forward the request and sends a GOAWAY that declares it unprocessed. HTTP/2
// clients send such a request again by themselves.
func GoAwayBefore() Fault {
	return Fault{name: "GOAWAY before", alone: true, do: func(x *exchange) {
		x.conn.goAwayUnseen(x.r.Context())
		panic(http.ErrAbortHandler)
	}}
}

// Refuse does not forward the request. It resets the stream with REFUSED_STREAM, which declares the
// request unprocessed. HTTP/2 clients then send the request again by themselves.
func Refuse() Fault {
	return Fault{name: "REFUSED_STREAM", do: func(x *exchange) {
		x.conn.reset(refusedStream)
		panic(http.ErrAbortHandler)
	}}
}

// ProtocolError forwards the request and resets the stream with PROTOCOL_ERROR. Go's HTTP/2 client
// sends such a request again by itself, although the server may have processed it.
func ProtocolError() Fault {
	return Fault{name: "PROTOCOL_ERROR, applied", do: func(x *exchange) {
		x.pass()
		x.conn.reset(protocolError)
		panic(http.ErrAbortHandler)
	}}
}

func (x *exchange) timeout() {
	x.status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout")
}

// status answers with a metav1.Status, as an API server reports a failure.
func (x *exchange) status(code int32, reason metav1.StatusReason, message string) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(int(code))
	_, _ = x.w.Write(body)
}

// cut resets the connection, with all requests on it.
func (x *exchange) cut() {
	x.conn.abort()
	panic(http.ErrAbortHandler)
}
