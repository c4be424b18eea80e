// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/router"
)

// longest is after how many seconds a watch ends at the latest, so that a right that was revoked ends with it.
const longest = 600

var (
	errNoRight  = errors.New("the verb sync on this SyncTarget is needed")
	errNotOwn   = errors.New("only the own SyncTarget is served here, and only its status can be written")
	errNotHere  = errors.New("this request is not served to syncers")
	errSelector = errors.New("a watch needs a label selector by which only objects of this cluster match")
)

// request is a request for a resource.
type request struct {
	*http.Request
	requestinfo.Info
	placement
	handler *Handler
	at      address
	query   url.Values
}

func (q request) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: q.Group, Version: q.Version, Resource: q.Resource}
}

func (q request) forbidden(why error) error {
	return apierrors.NewForbidden(q.gvr().GroupResource(), q.Name, why)
}

// serve serves a request, whose path is that of a request to one region. It returns an error only if it has not written an
// answer.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, id router.Identity, at address, rest string) error {
	if err := h.may(r.Context(), id, at); err != nil {
		return err
	}
	// The region must get the query that is judged here, so it is written again from the values that were read.
	query := r.URL.Query()
	r.URL.RawQuery = query.Encode()
	for _, key := range []string{"labelSelector", "fieldSelector", "watch"} {
		if len(query[key]) > 1 {
			return apierrors.NewBadRequest(fmt.Sprintf("query: %s is given %d times", key, len(query[key])))
		}
	}
	info, err := requestinfo.Parse(r.Method, "/"+rest, r.URL.RawQuery)
	if err != nil {
		return apierrors.NewBadRequest("path: " + err.Error())
	}
	q := request{r, info, placement{at.target, h.opts.Label}, h, at, query}
	switch {
	case !info.IsResource && r.Method == http.MethodGet && plain(rest), q.isKubeSystem():
		q.forward(w)
		return nil
	case !info.IsResource:
		return apierrors.NewForbidden(schema.GroupResource{}, "", errNotHere)
	case q.gvr().GroupResource() == syncTargets:
		return q.syncTarget(w)
	}
	return q.resource(w)
}

// isKubeSystem reports whether the request reads the namespace by whose UID a syncer knows its upstream.
func (q request) isKubeSystem() bool {
	return q.Verb == "get" && q.Group == "" && q.Resource == "namespaces" && q.Name == "kube-system" && q.Subresource == ""
}

// resource serves objects of the cluster.
func (q request) resource(w http.ResponseWriter) error {
	if q.Subresource != "" && q.Subresource != "status" {
		return q.forbidden(errNotHere)
	}
	switch q.Verb {
	case "list":
		return q.collection(w)
	case "watch":
		if !requestinfo.IsTrue(q.query["watch"]) {
			return q.forbidden(errNotHere) // a path such as /api/v1/watch/secrets
		}
		return q.collection(w)
	case "get":
		return q.get(w)
	case "patch", "update":
		return q.write(w)
	default:
		return q.forbidden(errNotHere)
	}
}

// syncTarget serves the own SyncTarget.
func (q request) syncTarget(w http.ResponseWriter) error {
	reads := q.Subresource == "" && (q.Verb == "get" || q.Verb == "list" || q.Verb == "watch")
	writes := q.Subresource == "status" && (q.Verb == "patch" || q.Verb == "update")
	if q.Name != q.target || !reads && !writes {
		return q.forbidden(errNotOwn)
	}
	q.forward(w)
	return nil
}

// collection serves a list or a watch.
func (q request) collection(w http.ResponseWriter) error {
	selector, err := labels.Parse(q.query.Get("labelSelector"))
	switch {
	case err != nil:
		return apierrors.NewBadRequest(fmt.Sprintf("query: labelSelector: %v", err))
	case q.implied(selector):
		q.forward(w)
		return nil
	case q.Verb == "watch":
		return q.forbidden(errSelector)
	default:
		return q.list(w)
	}
}

// forward sends the request to the region as the user of the SyncTarget. The proxy answers it.
func (q request) forward(w http.ResponseWriter) {
	q.limitWatch()
	q.handler.inner.ServeHTTP(w, q.Request)
}

// limitWatch makes the region end a watch in time.
func (q request) limitWatch() {
	if q.Verb != "watch" {
		return
	}
	seconds, err := strconv.Atoi(q.query.Get("timeoutSeconds"))
	if err != nil || seconds <= 0 || seconds > longest {
		seconds = longest
	}
	q.query.Set("timeoutSeconds", strconv.Itoa(seconds))
	q.URL.RawQuery = q.query.Encode()
}
