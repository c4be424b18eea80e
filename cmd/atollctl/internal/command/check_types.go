// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installedTypes is the state of Atoll's types in a peer.
type installedTypes struct {
	crds     map[string]*unstructured.Unstructured // by name; only those that exist
	unserved []string                              // required types that discovery does not show; only if hidden
	hidden   bool                                  // the user may not read CRDs
}

// requiredTypes returns the types without which no command on a ring works.
func requiredTypes() []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{peerSets}
	for _, kind := range account.Kinds() {
		all = append(all, kind.Resource)
	}
	return all
}

// observeTypes reads the CRDs of this release. The least rights do not include reading CRDs: without
// that right, it reads in discovery which types are served.
func observeTypes(ctx context.Context, c *region.Conn) (installedTypes, error) {
	ours, err := config.CRDs()
	if err != nil {
		return installedTypes{}, err
	}
	present := make([]*unstructured.Unstructured, len(ours))
	err = inParallel(len(ours), func(i int) error {
		crd, err := c.Dynamic().Resource(crdResource).Get(ctx, ours[i].GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		present[i] = crd
		return err
	})
	if apierrors.IsForbidden(err) {
		unserved, err := undiscovered(ctx, c, requiredTypes())
		return installedTypes{hidden: true, unserved: unserved}, err
	}
	found := installedTypes{crds: map[string]*unstructured.Unstructured{}}
	for i, crd := range present {
		if crd != nil {
			found.crds[ours[i].GetName()] = crd
		}
	}
	return found, err
}

// undiscovered returns those of the types that discovery does not show.
func undiscovered(ctx context.Context, c *region.Conn, types []schema.GroupVersionResource) ([]string, error) {
	client, err := region.RESTFor(c.Config())
	if err != nil {
		return nil, err
	}
	var absent []string
	for _, gvr := range types {
		body, err := client.Get().AbsPath("/apis", gvr.Group, gvr.Version).Do(ctx).Raw()
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		var list metav1.APIResourceList
		if err == nil {
			if err := json.Unmarshal(body, &list); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource }) {
			absent = append(absent, gvr.GroupResource().String())
		}
	}
	return absent, nil
}

func judgeTypes(found installedTypes, err error, c commands) []finding {
	if err != nil {
		return []finding{unknown(checkTypes, err)}
	}
	install := c.reading("install-crds")
	if found.hidden {
		if len(found.unserved) > 0 {
			return []finding{failed(checkTypes, install, "not served: %s", strings.Join(found.unserved, ", "))}
		}
		return []finding{passed(checkTypes, "all required types are served; their schemas were not compared, because the user may not get CRDs")}
	}
	ours, err := config.CRDs()
	if err != nil {
		return []finding{unknown(checkTypes, err)}
	}
	required := map[string]bool{}
	for _, gvr := range requiredTypes() {
		required[gvr.GroupResource().String()] = true
	}
	names := map[config.State][]string{}
	others := 0 // not installed, and needed by some programs only
	for _, crd := range ours {
		name := crd.GetName()
		state := config.StateOf(found.crds[name], crd)
		if !required[name] && (state == config.Missing || state == config.Foreign) {
			others++
			continue
		}
		names[state] = append(names[state], name)
	}
	list := func(s config.State) string { return strings.Join(names[s], ", ") }
	foreign := failed(checkTypes, c.reading("install-crds", "--override"), "installed by other software: %s; replace them only if it does not need them", list(config.Foreign))
	foreign.code = exitConflict
	byState := []finding{
		config.Missing:  failed(checkTypes, install, "not installed: %s", list(config.Missing)),
		config.Foreign:  foreign,
		config.Newer:    failed(checkTypes, "use the atollctl of that release", "installed by a newer release: %s", list(config.Newer)),
		config.Deleting: failed(checkTypes, install, "being deleted: %s; wait until they are gone", list(config.Deleting)),
		config.Rejected: failed(checkTypes, install, "not established: %s; another CRD of the group may have their names", list(config.Rejected)),
		config.Differs:  warned(checkTypes, install, "with another schema than this release: %s", list(config.Differs)),
		config.Same: passed(checkTypes, "%d types are established and have the schemas of this release; %d others, which only some programs need, are not installed",
			len(names[config.Same]), others),
	}
	var findings []finding
	for state, f := range byState {
		if len(names[config.State(state)]) > 0 && (config.State(state) != config.Same || len(findings) == 0) {
			findings = append(findings, f)
		}
	}
	return findings
}
