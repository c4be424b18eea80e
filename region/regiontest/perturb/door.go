// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/requestinfo"
)

type roundTripper = http.RoundTripper

// door is the connection of one instance of a loop to a server. It applies the faults of the plan.
type door struct {
	run      *run
	server   string
	instance *instance
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	info, err := requestinfo.Of(r)
	d.run.count(func() Point { return d.of(info.Verb, info) })
	if gone := d.instance.cause(); gone != nil {
		closeBody(r)
		return nil, gone // a process that has ended sends nothing
	}
	switch {
	case err != nil, !info.IsResource, info.Group == "authorization.k8s.io", info.Group == "authentication.k8s.io":
		return d.send(r)
	case info.Verb == "watch":
		return d.watch(r, info)
	case info.Verb == "get", info.Verb == "list":
		if g := d.run.gap(d.of("watch", info)); g.closed() {
			return nil, reset(r)
		}
		return d.send(r)
	case r.URL.Query().Get("dryRun") != "":
		return d.send(r)
	default:
		return d.write(r, info)
	}
}

func (d *door) send(r *http.Request) (*http.Response, error) {
	return d.run.sendTracked(d.instance, d.next, r)
}

// of returns the point of a request, with N zero. The point of a watch has neither namespace, name
// nor subresource, so all watches of a loop on one resource share it.
func (d *door) of(verb string, info requestinfo.Info) Point {
	p := Point{
		Loop: d.instance.loop, Server: d.server, Verb: verb, Subresource: info.Subresource,
		Resource:  schema.GroupResource{Group: info.Group, Resource: info.Resource}.String(),
		Namespace: info.Namespace, Name: info.Name,
	}
	if verb == "watch" {
		p.Namespace, p.Name, p.Subresource = "", "", ""
	}
	return p
}

// written returns the point of a write. The name of an object to create is in the body.
func (d *door) written(r *http.Request, info requestinfo.Info) (p Point, err error) {
	p = d.of(info.Verb, info)
	if info.Verb == "create" && p.Name == "" {
		p.Name, err = nameIn(r)
	}
	return p, err
}

func (d *door) write(r *http.Request, info requestinfo.Info) (*http.Response, error) {
	p, err := d.written(r, info)
	if err != nil {
		return nil, err
	}
	p, faults := d.run.arrive(p, false)
	for _, f := range faults {
		switch f.Kind {
		case CrashBefore:
			closeBody(r)
			d.instance.end(errCrashed)
			return nil, errCrashed
		case LoseRequest:
			closeBody(r)
			return nil, reset(r)
		case ApplyLate:
			return d.later(r, p, info)
		case EditBefore, DeleteBefore, RemakeBefore:
			// A crash of the loop does not stop the other client.
			if err := d.run.users.meddle(context.WithoutCancel(r.Context()), f); err != nil {
				d.run.fail(fmt.Errorf("%s: %w", f, err))
			}
		case Restore:
			closeBody(r)
			d.run.restore(f)
			return nil, errCrashed
		case RestoreUnder:
			d.run.restore(f)
		}
	}
	resp, err := d.carryOut(r, p, info, d.send)
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Kind == CrashAfter || f.Kind == LoseReply })
	if i < 0 {
		return resp, err
	}
	if err == nil {
		_ = resp.Body.Close()
	}
	if faults[i].Kind == CrashAfter {
		d.instance.end(errCrashed)
		return nil, errCrashed
	}
	return nil, reset(r)
}

// later responds with 504 and executes the write afterwards.
func (d *door) later(r *http.Request, p Point, info requestinfo.Info) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		closeBody(r)
	}
	d.run.late.Go(func() {
		select {
		case <-time.After(d.run.scenario.lateWrite()):
		case <-d.run.over:
			return
		}
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		if resp, err := d.carryOut(again, p, info, d.next.RoundTrip); err == nil { // no caller waits for the response
			_ = resp.Body.Close()
		}
	})
	return status(r, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the server did not answer in time"), nil
}

// nameIn returns the name of the object in the body of r, and keeps the body readable.
func nameIn(r *http.Request) (string, error) {
	body, err := bodyOf(r)
	if len(body) == 0 || err != nil {
		return "", err
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &o); err != nil {
		return "", nil //nolint:nilerr // the server rejects the body and names the error
	}
	return o.Name, nil
}

// bodyOf returns the body of r, and keeps it readable.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	closeBody(r)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

func reset(r *http.Request) error {
	closeBody(r)
	return fmt.Errorf("read from %s: %w", r.URL.Host, syscall.ECONNRESET)
}

// status returns a response with a Status.
func status(r *http.Request, code int32, reason metav1.StatusReason, message string) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	})
	if err != nil {
		panic(err) // impossible: all fields can be encoded
	}
	return &http.Response{
		StatusCode: int(code), Status: strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(int(code)))),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}
