// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/apistatus"
	"github.com/atoll-dev/atoll/router"
)

// page is how many objects a list reads at a time.
const page = 500

func (q request) client() (*router.Client, error) {
	return q.handler.routes.Client(q.at.region, q.handler.identity(q.at))
}

func objects(c *router.Client, q request) dynamic.ResourceInterface {
	if q.Namespace == "" {
		return c.Dynamic().Resource(q.gvr())
	}
	return c.Dynamic().Resource(q.gvr()).Namespace(q.Namespace)
}

func partial(c *router.Client, q request) metadata.ResourceInterface {
	if q.Namespace == "" {
		return c.Metadata().Resource(q.gvr())
	}
	return c.Metadata().Resource(q.gvr()).Namespace(q.Namespace)
}

// wholeAccepted reports whether the answer has whole objects, rather than metadata. The error is a 406.
func (q request) wholeAccepted() (bool, error) {
	accepted := strings.Join(q.Header.Values("Accept"), ",")
	if strings.TrimSpace(accepted) == "" {
		return true, nil
	}
	for clause := range strings.SplitSeq(accepted, ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil || !slices.Contains([]string{"application/json", "application/*", "*/*"}, media) {
			continue
		}
		switch as := params["as"]; {
		case as == "":
			return true, nil
		case params["g"] == metav1.GroupName && params["v"] == "v1" && (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList"):
			return false, nil
		}
	}
	return false, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only application/json is served, of whole objects or as PartialObjectMetadata of meta.k8s.io/v1",
	}}
}

// get serves one object, if it is placed in the cluster.
func (q request) get(w http.ResponseWriter) error {
	whole, err := q.wholeAccepted()
	if err != nil {
		return err
	}
	o, err := q.read()
	if err != nil {
		return err
	}
	return answer(w, shown(o, whole))
}

// shown returns the object as an answer has it.
func shown(o *unstructured.Unstructured, whole bool) map[string]any {
	if whole {
		return o.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}
}

// read reads the object that the request names. It returns NotFound if the object is not placed in the cluster.
func (q request) read() (*unstructured.Unstructured, error) {
	client, err := q.client()
	if err != nil {
		return nil, err
	}
	o, err := objects(client, q).Get(q.Context(), q.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, err
	case !q.has(o):
		return nil, apierrors.NewNotFound(q.gvr().GroupResource(), q.Name)
	}
	return o, nil
}

// list serves the objects of a list that are placed in the cluster. Without a limit it reads all pages.
func (q request) list(w http.ResponseWriter) error {
	opts := metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q.query, &opts, nil); err != nil {
		return apierrors.NewBadRequest("query: " + err.Error())
	}
	whole, err := q.wholeAccepted()
	if err != nil {
		return err
	}
	client, err := q.client()
	if err != nil {
		return err
	}
	all := opts.Limit == 0
	if all || opts.Limit > page {
		opts.Limit = page
	}
	var items []any
	for {
		list, next, err := q.page(client, whole, opts)
		if err != nil {
			return err
		}
		items = append(items, list...)
		if opts.Continue = next.Continue; opts.Continue == "" || !all {
			return answer(w, listOf(next, items))
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = "", "" // a continue token has them
	}
}

// listHead is the part of a list that is not its objects.
type listHead struct {
	apiVersion, kind          string
	ResourceVersion, Continue string
}

// page reads one page, and returns the objects that are placed in the cluster.
func (q request) page(client *router.Client, whole bool, opts metav1.ListOptions) (placed []any, head listHead, err error) {
	if !whole {
		list, err := partial(client, q).List(q.Context(), opts)
		if err != nil {
			return nil, head, err
		}
		for i := range list.Items {
			if o := &list.Items[i]; q.has(o) {
				placed = append(placed, o)
			}
		}
		return placed, listHead{"meta.k8s.io/v1", "PartialObjectMetadataList", list.ResourceVersion, list.Continue}, nil
	}
	list, err := objects(client, q).List(q.Context(), opts)
	if err != nil {
		return nil, head, err
	}
	for i := range list.Items {
		if o := &list.Items[i]; q.has(o) {
			placed = append(placed, o.Object)
		}
	}
	return placed, listHead{list.GetAPIVersion(), list.GetKind(), list.GetResourceVersion(), list.GetContinue()}, nil
}

// listOf returns a list. The number of remaining objects is left out, because it counts those of other clusters.
func listOf(head listHead, items []any) map[string]any {
	if items == nil {
		items = []any{}
	}
	meta := map[string]any{"resourceVersion": head.ResourceVersion}
	if head.Continue != "" {
		meta["continue"] = head.Continue
	}
	return map[string]any{"apiVersion": head.apiVersion, "kind": head.kind, "metadata": meta, "items": items}
}

func answer(w http.ResponseWriter, o any) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	apistatus.Header(w, http.StatusOK)
	_, _ = w.Write(data) // an error means that the client has gone
	return nil
}
