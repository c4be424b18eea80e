// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/proxy"
)

// merged serves all regions as one at /regions/*/ and /clusters/*/: lists, watches, and objects by
// their names, which are NAME@REGION. Objects are written in their own regions. Any other request,
// above all discovery, goes to one region.
type merged struct {
	routes *router.Router
	single http.Handler // serves one region
	all    http.Handler // serves all regions, with the same checks as for one

	budget *aggregate.Budget // for the answers that all callers together hold at one time

	mu   sync.Mutex
	apis map[string]*aggregate.API // by token, of known users
}

func newMerged(routes *router.Router, budget *aggregate.Budget, single *proxy.Proxy) *merged {
	m := &merged{routes: routes, single: single, budget: budget, apis: map[string]*aggregate.API{}}
	m.all = single.Protect(func(w http.ResponseWriter, r *http.Request, id router.Identity) {
		if err := m.serve(w, r, id); err != nil {
			refuse(w, err)
		}
	})
	return m
}

// ServeHTTP serves requests about all regions, and passes others to single.
func (m *merged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := cutAll(r.URL.Path)
	if !ok {
		m.single.ServeHTTP(w, r)
		return
	}
	routes := m.routes.Routes()
	if _, ok := parseTarget(rest); ok || len(routes) == 0 {
		m.all.ServeHTTP(w, r)
		return
	}
	// A request without a resource goes to the first region that is not known to be unreachable, or
	// else to the first.
	i := max(0, slices.IndexFunc(routes, func(at router.Route) bool { return !m.routes.Health(at.Region).Unreachable() }))
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/regions/"+routes[i].Region.String()+"/"+rest, ""
	m.single.ServeHTTP(w, r)
}

// cutAll returns the part of a path after the prefix for all regions.
func cutAll(path string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "/regions/*/"); ok {
		return rest, ok
	}
	return strings.CutPrefix(path, "/clusters/*/")
}

// serve serves a request about all regions. It returns an error only if it has not written a
// response.
func (m *merged) serve(w http.ResponseWriter, r *http.Request, id router.Identity) error {
	rest, _ := cutAll(r.URL.Path)
	t, ok := parseTarget(rest)
	if !ok {
		return apierrors.NewServiceUnavailable("no regions are known")
	}
	api, err := m.api(r, id)
	if err != nil {
		return err
	}
	if strings.Contains(rest, "//") {
		return apierrors.NewBadRequest("path: it has an empty segment") // an empty namespace would mean all namespaces
	}
	if err := t.validate(); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if r.Method != http.MethodGet {
		return apierrors.NewMethodNotSupported(t.GroupResource(), strings.ToLower(r.Method)+" over all regions")
	}
	policy, err := aggregate.PolicyOf(r)
	if err != nil {
		return err
	}
	ctx, report := aggregate.WithReport(aggregate.WithPolicy(r.Context(), policy))
	if t.name != "" {
		o, err := api.Dynamic().Resource(t.GroupVersionResource).Namespace(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
		warn(w, report)
		if err != nil {
			return err
		}
		return answer(w, o)
	}
	query, opts := r.URL.Query(), metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	reader := api.Reader(t.namespace, t.GroupVersionResource)
	if opts.Watch {
		return follow(w, r, reader, opts)
	}
	out := &listWriter{w: w, report: report}
	list, err := reader.Pages(ctx, opts, out.page)
	if err != nil && out.begun {
		panic(http.ErrAbortHandler) // aborts the response, so that the client does not take it for complete
	}
	if err != nil {
		warn(w, report)
		return err
	}
	out.end(list)
	return nil
}

// api returns the API of the caller. The API is kept for each token, so that its resource versions
// and continue tokens stay valid.
func (m *merged) api(r *http.Request, id router.Identity) (*aggregate.API, error) {
	token := r.Header.Get("Authorization")
	m.mu.Lock()
	defer m.mu.Unlock()
	if api := m.apis[token]; api != nil {
		return api, nil
	}
	set, err := aggregate.Regions(m.routes, id, nil)
	if err != nil {
		return nil, err
	}
	api, err := aggregate.New(set, aggregate.Options{Qualify: true, Map: m.types, Budget: m.budget})
	if err == nil {
		m.apis[token] = api
	}
	return api, err
}

// types maps a group that is the name of a provider, as in couchdbs.loodse, to the group of region
// k, as in couchdbs.eu-west-1.loodse. It returns false if k belongs to another provider. Other
// groups stay as they are.
func (m *merged) types(common schema.GroupVersionResource, k region.Key) (schema.GroupVersionResource, bool) {
	ofProvider := func(r router.Route) bool { return r.Region.Provider == common.Group }
	if !slices.ContainsFunc(m.routes.Routes(), ofProvider) {
		return common, true
	}
	return aggregate.ByProvider(common.Group)(common, k)
}

// target is the resource or object that the path of a request names.
type target struct {
	schema.GroupVersionResource
	namespace, name string
}

// parseTarget parses api/VERSION/... and apis/GROUP/VERSION/...; ok is false if no resource is
// named.
func parseTarget(rest string) (t target, ok bool) {
	parts := strings.Split(rest, "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		t.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return target{}, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	t.name = strings.Join(parts[1:], "/")
	return t, true
}

// validate rejects parts that would lead a region's client to another path, and subresources.
func (t target) validate() error {
	plain, at, qualified := strings.Cut(t.name, "@")
	for _, part := range []string{t.Group, t.Version, t.Resource, t.namespace, t.name, plain} {
		if wrong := content.IsPathSegmentName(part); len(wrong) > 0 {
			return fmt.Errorf("path: %q %s", part, wrong[0])
		}
	}
	if t.Version == "" || t.Resource == "" {
		return errors.New("path: it names no type")
	}
	if qualified && (plain == "" || at == "") {
		return fmt.Errorf("path: %q is no name; want NAME@REGION", t.name)
	}
	core := t.Group == "" && t.namespace != ""
	switch {
	case t.Resource == "watch":
		// An API server would treat the rest of the path as a watch without end, which callers do
		// not expect of the name of a type.
		return errors.New("path: /watch/ is not served; use the parameter watch")
	case core && t.name == "" && (t.Resource == "status" || t.Resource == "finalize"):
		return fmt.Errorf("path: %q is a subresource of a namespace", t.Resource)
	}
	return nil
}

// follow serves a watch until the watch or the request ends.
func follow(w http.ResponseWriter, r *http.Request, reader *aggregate.Reader, opts metav1.ListOptions) error {
	stream, err := reader.WatchWithContext(r.Context(), opts)
	if err != nil {
		return err
	}
	defer func() {
		stream.Stop()
		for range stream.ResultChan() { // until all its goroutines have ended
		}
	}()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	lines, out := json.NewEncoder(w), http.NewResponseController(w)
	for err = out.Flush(); err == nil; err = out.Flush() {
		e, ok := <-stream.ResultChan()
		if !ok || lines.Encode(metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Object: e.Object}}) != nil {
			break
		}
	}
	return nil
}

// warn sets headers, which kubectl prints, with the names of the regions that are missing in the
// response.
func warn(w http.ResponseWriter, report *aggregate.Report) {
	for _, text := range report.Warnings() {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil { // it only fails for control characters
			w.Header().Add("Warning", header)
		}
	}
}

func answer(w http.ResponseWriter, o runtime.Object) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	_, _ = w.Write(data) // an error means that the client has gone
	return nil
}

// refuse answers with the status of an API error, or without details for any other error.
func refuse(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "this failed here"}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	if status.Code < http.StatusBadRequest || status.Code > 599 {
		status.Code = http.StatusInternalServerError // a region may send any code, and net/http panics on invalid ones
	}
	status.APIVersion, status.Kind = "v1", "Status"
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
