// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/requestinfo"
)

// Write is a write of a loop that a server has executed: neither a dry run nor a rejected write.
type Write struct {
	Point

	// FieldManager is the field manager in the request; "" without one.
	FieldManager string

	// Before and After are the complete object on the server before and after the write. Nil: it did not exist. Both
	// are nil for a deletecollection, and for an object whose name the server generated.
	Before, After *unstructured.Unstructured
}

// turns lets only one client write at a time. A nil turns lets all clients write at once.
type turns chan struct{}

// take waits for a turn. giveBack ends the turn.
func (t turns) take() (giveBack func()) {
	if t == nil {
		return func() {}
	}
	t <- struct{}{}
	return func() { <-t }
}

// carryOut sends a write. If the server executes the write, carryOut records it and calls Scenario.Always.
func (d *door) carryOut(r *http.Request, p Point, info requestinfo.Info, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if d.run.scenario.Always == nil {
		resp, err := send(r)
		if carriedOut(resp, err) {
			d.run.wrote(p)
		}
		return resp, err
	}
	defer d.run.users.turns.take()()
	// Judge the write even if the loop is stopped now: the server may execute it anyway.
	ctx := context.WithoutCancel(r.Context())
	w := Write{Point: p, FieldManager: r.URL.Query().Get("fieldManager")}
	var err error
	if w.Before, err = d.run.read(ctx, p, info.Version); err != nil {
		d.run.fail(fmt.Errorf("read the object before %s: %w", p, err))
	}
	resp, err := send(r)
	if !carriedOut(resp, err) {
		return resp, err
	}
	d.run.wrote(p)
	d.run.judge(ctx, w, info.Version)
	return resp, nil
}

func carriedOut(resp *http.Response, err error) bool {
	return err == nil && resp.StatusCode < http.StatusMultipleChoices
}

// judge calls Scenario.Always after a write.
func (r *run) judge(ctx context.Context, w Write, version string) {
	var err error
	if w.After, err = r.read(ctx, w.Point, version); err != nil {
		r.fail(fmt.Errorf("read the object after %s: %w", w.Point, err))
		return
	}
	if err := r.scenario.Always(ctx, w, r.bare); err != nil {
		r.fail(fmt.Errorf("after %s: Scenario.Always fails: %w", w.Point, err))
	}
}

// bare returns a configuration whose requests to the server meet no faults.
func (r *run) bare(server string) *rest.Config { return r.servers[server].Config() }

// read returns the object of a write; nil if it does not exist.
func (r *run) read(ctx context.Context, p Point, version string) (*unstructured.Unstructured, error) {
	if p.Name == "" {
		return nil, nil
	}
	c, err := dynamic.NewForConfig(r.bare(p.Server))
	if err != nil {
		return nil, err
	}
	gr := schema.ParseGroupResource(p.Resource)
	var objects dynamic.ResourceInterface = c.Resource(gr.WithVersion(version))
	if p.Namespace != "" && p.Resource != "namespaces" {
		objects = c.Resource(gr.WithVersion(version)).Namespace(p.Namespace)
	}
	o, err := objects.Get(ctx, p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}
