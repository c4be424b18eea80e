// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package requestinfo

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Info is the meaning of a request to an API server. Fields that do not apply are empty.
type Info struct {
	// IsResource is set for requests below /api/VERSION/ and /apis/GROUP/VERSION/. For others, only
	// Verb is set.
	IsResource bool
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or proxy. Without a
	// resource it is the HTTP method in lower case.
	Verb                        string
	Group, Version              string
	Namespace                   string
	Resource, Subresource, Name string
}

// Of returns the Info of r, whose URL must be that of an API server. The error is Parse's.
func Of(r *http.Request) (Info, error) { return Parse(r.Method, r.URL.Path, r.URL.RawQuery) }

// Parse returns the Info of a request. path is decoded, query is not. It fails if a path ends after
// /watch or /proxy; Info is then set as far as possible.
func Parse(method, path, query string) (Info, error) {
	info := Info{Verb: strings.ToLower(method)}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) > 3 && parts[0] == "apis":
		info.Group, parts = parts[1], parts[2:]
	default:
		return info, nil
	}
	info.IsResource, info.Version, parts = true, parts[0], parts[1:]

	switch parts[0] {
	case "watch", "proxy":
		if len(parts) < 2 {
			return info, fmt.Errorf("the path ends after /%s", parts[0])
		}
		info.Verb, parts = parts[0], parts[1:]
	default:
		info.Verb = verbs[method]
	}
	info.locate(parts)
	switch {
	case info.Name != "":
	case info.Verb == "get":
		info.collection(query)
	case info.Verb == "delete":
		info.Verb = "deletecollection"
	}
	return info, nil
}

// locate sets the fields that name the resource, from the parts of the path after the version and the verb.
func (i *Info) locate(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		if len(parts) > 2 && !slices.Contains(namespaceSubresources, parts[2]) {
			parts = parts[2:]
		}
	}
	i.Resource = parts[0]
	if len(parts) > 1 {
		i.Name = parts[1]
	}
	if len(parts) > 2 && i.Verb != "proxy" {
		i.Subresource = parts[2]
	}
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// namespaceSubresources can follow a namespace's name and are not resources in it.
var namespaceSubresources = []string{"status", "finalize"}

// collection sets the fields of a read without a name: a list, or a watch.
func (i *Info) collection(query string) {
	i.Verb = "list"
	if query == "" {
		return
	}
	values, _ := url.ParseQuery(query) // an API server also uses the pairs that it can parse
	if IsTrue(values["watch"]) {
		i.Verb = "watch"
	}
	if len(values["fieldSelector"]) > 0 {
		i.Name = selectedName(values)
	}
}

// IsTrue parses a bool as API servers do: only a missing value, "0" and "false" are false.
func IsTrue(values []string) bool {
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// selectedName returns the name that a field selector requires. An API server ignores the selector
// if any other option is malformed.
func selectedName(values url.Values) string {
	var opts metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&values, &opts, nil); err != nil {
		return ""
	}
	if _, err := labels.Parse(opts.LabelSelector); err != nil {
		return ""
	}
	selector, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return ""
	}
	if name, ok := selector.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(name)) == 0 {
		return name
	}
	return ""
}

// longRunning are the subresources whose responses last until one side ends them.
var longRunning = []string{"attach", "exec", "proxy", "log", "portforward"}

// IsLongRunning reports whether the response may last until one side ends it, as kube-apiserver
// decides: a watch, a proxied request, exec, attach, port-forward, and all logs, followed or not.
func (i Info) IsLongRunning() bool {
	return i.Verb == "watch" || i.Verb == "proxy" || i.IsResource && slices.Contains(longRunning, i.Subresource)
}
