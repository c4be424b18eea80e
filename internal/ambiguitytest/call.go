// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ambiguitytest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/boxtest"
	"github.com/atoll-dev/atoll/region"
)

// call is one request of an operation.
type call struct {
	name  string
	peer  region.PeerName
	match func(boxtest.Request) bool
	verb  string // verb of the step that makes the write; empty for a read
	stage string // stage that the write sets; distinguishes a commit from other puts, such as heartbeats
	nth   int    // index of the step among the steps with the same peer, verb and stage, from zero
}

// script is an operation with the calls that meet ambiguities: its writes, except heartbeats and
// the writes that bind guards after the commit, and the reads on which the operation bases a
// decision.
type script struct {
	name string
	operation
	calls []call
}

var scripts = []script{
	{"add ServiceCluster", addServiceCluster, []call{
		{"create primary", Target, is(http.MethodPost, ""), "create", "Reserved", 0},
		{"create secondary", Other, is(http.MethodPost, ""), "create", "Reserved", 0},
		{"read PeerSet", Target, reads("peersets"), "", "", 0},
		{"read owner", Target, reads("accounts"), "", "", 0},
		{"commit", Target, is(http.MethodPut, "Configured"), "put", "Configured", 0},
	}},
	{"add Account", addAccount, []call{
		{"create primary", Target, is(http.MethodPost, ""), "create", "Reserved", 0},
		{"create replica", Other, is(http.MethodPost, ""), "create", "Reserved", 0},
		{"commit", Target, is(http.MethodPut, "Active"), "put", "Active", 0},
		{"activate", Other, is(http.MethodPut, "Active"), "put", "Active", 0},
	}},
	{"update Account", updateAccount, []call{
		{"read primary", Target, reads("accounts"), "", "", 0},
		{"commit", Target, is(http.MethodPut, "Active"), "put", "Active", 0},
		{"put revision", Other, is(http.MethodPut, "Active"), "put", "Active", 0},
	}},
	{"remove ServiceCluster", removeServiceCluster, []call{
		{"commit", Target, is(http.MethodPut, "Removing"), "put", "Removing", 0},
		{"delete primary", Target, is(http.MethodDelete, ""), "delete", "", 0},
		{"delete guard", Other, is(http.MethodDelete, ""), "delete", "", 0},
		{"put finalizer away", Target, withoutFinalizer, "put", "Removing", 1},
	}},
	{"remove Account", removeAccount, []call{
		{"commit", Target, is(http.MethodPut, "Removing"), "put", "Removing", 0},
		{"delete replica", Other, is(http.MethodDelete, ""), "delete", "", 0},
		{"delete primary", Target, is(http.MethodDelete, ""), "delete", "", 0},
		{"put finalizer away", Target, withoutFinalizer, "put", "Removing", 1},
	}},
}

// is returns a function that reports whether a request has the method, and writes an Account or a
// ServiceCluster whose stage in the body is stage. An empty stage matches any.
func is(method, stage string) func(boxtest.Request) bool {
	return func(r boxtest.Request) bool {
		return r.Method == method && claimed(r) && (stage == "" || stageOf(r) == stage)
	}
}

func reads(resource string) func(boxtest.Request) bool {
	return func(r boxtest.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.Path, "/"+resource+"/")
	}
}

func withoutFinalizer(r boxtest.Request) bool {
	return is(http.MethodPut, "Removing")(r) && !slices.Contains(bodyOf(r).Metadata.Finalizers, v1alpha1.PrimaryFinalizer)
}

// claimed reports whether a request addresses an Account or a ServiceCluster itself, rather than a
// subresource. It returns false for a dry run, which only validates the schema.
func claimed(r boxtest.Request) bool {
	if r.Query.Has("dryRun") {
		return false
	}
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	at := slices.IndexFunc(parts, func(p string) bool { return p == "serviceclusters" || p == "accounts" })
	return at >= 0 && len(parts)-at <= 2 // no subresource
}

func stageOf(r boxtest.Request) string { return bodyOf(r).Spec.Fanout.Stage }

// body is the part of an object that the matchers use.
type body struct {
	Metadata struct {
		Name       string
		Finalizers []string
	}
	Spec struct{ Fanout struct{ Stage string } }
}

func bodyOf(r boxtest.Request) (b body) {
	_ = json.Unmarshal(r.Body, &b) // a body that is not an object has no stage
	return b
}
