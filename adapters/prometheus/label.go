// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/atoll-dev/atoll/region"
)

const (
	success = "success"
	failure = "failure"
	other   = "other"
	unknown = "unknown"
)

func outcome(err error) string {
	if err != nil {
		return failure
	}
	return success
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// method bounds the methods of HTTP: a gateway passes on the methods of its clients.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		http.MethodConnect, http.MethodTrace:
		return m
	default:
		return other
	}
}

// code bounds status codes: a server may send any three digits.
func code(status int) string {
	if status != 0 && http.StatusText(status) == "" {
		return other
	}
	return strconv.Itoa(status)
}

// verb bounds the verbs of requests. For a path without a resource, the verb is the client's method.
func verb(v string) string {
	switch v {
	case "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy":
		return v
	}
	if m := strings.ToUpper(v); method(m) == m && v == strings.ToLower(v) {
		return v
	}
	return other
}

// regionOf bounds the regions of requests: a client may ask for any region.
func (m *Metrics) regionOf(k region.Key) string {
	if m.opts.Directory == nil || k == (region.Key{}) {
		return ""
	}
	d := m.opts.Directory()
	if d == nil {
		return unknown
	}
	snapshot := d.Snapshot()
	if _, ok := snapshot.Locate(k); ok {
		return k.String()
	}
	// The proxy serves a peer itself as a region of this provider.
	if _, ok := snapshot.Peer(region.PeerName(k.Name)); ok && k.Provider == "peer" {
		return k.String()
	}
	return unknown
}
