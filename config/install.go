// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// FieldManager owns the fields of the CRDs that InstallCRDs applies.
const FieldManager = "atoll"

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallOptions configure InstallCRDs. The zero value installs all CRDs and
// overrides none.
type InstallOptions struct {
	// Groups limits the installation to the CRDs of these API groups, such as
	// workload.kcp.io. Empty means all; an unknown group is an error.
	Groups []string

	// Override replaces CRDs of the same names that other software installed. The objects of
	// these CRDs stay, and must then satisfy our schemas. The other software gets our schemas
	// instead of its own.
	Override bool
}

// Change is the effect of InstallCRDs on one CRD.
type Change string

const (
	// Created means that the CRD did not exist before.
	Created Change = "Created"
	// Updated means that the CRD existed with other content.
	Updated Change = "Updated"
	// Unchanged means that the CRD existed with the same content.
	Unchanged Change = "Unchanged"
)

// Installed is the result for one CRD.
type Installed struct {
	Name   string // such as accounts.catalog.kubecarrier.io
	Change Change
	Before string // the former schema version; empty if the CRD did not exist or was of other software
}

// InstallCRDs applies the CRDs of this module to an API server by server-side apply. It waits
// until each CRD is established and served in discovery and its objects can be read. It blocks
// until then or until ctx ends; without a deadline in ctx it may wait for ever. It is
// idempotent, and any number of processes may call it at once.
//
// It reads all CRDs before it writes the first. It writes nothing and returns a
// *ForeignCRDError if a CRD was installed by other software and opts.Override is not set, a
// *NewerCRDError if a CRD is of a newer release, or another error if a CRD is being deleted. It
// joins several such errors. The error for missing rights names the rights, and
// apierrors.IsForbidden is true for it. After an error during or after the writes call it
// again.
func InstallCRDs(ctx context.Context, api region.API, opts InstallOptions) ([]Installed, error) {
	if argument.Missing(api) {
		return nil, errors.New("install CRDs: api is nil: pass what region.APIFor returns")
	}
	crds, err := chosen(opts.Groups)
	if err != nil {
		return nil, err
	}
	client := api.Dynamic().Resource(crdResource)
	present := make([]*unstructured.Unstructured, len(crds))
	var refused []error
	for i, crd := range crds {
		present[i], err = client.Get(ctx, crd.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			present[i] = nil
		case err != nil:
			return nil, failed("get", crd.GetName(), err)
		default:
			refused = append(refused, refuse(present[i], crd, opts.Override))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return nil, err
	}
	installed := make([]Installed, len(crds))
	for i, crd := range crds {
		installed[i], err = install(ctx, client, present[i], crd, opts.Override)
		if err != nil {
			return installed[:i], err
		}
	}
	return installed, awaitServed(ctx, api, crds)
}

// chosen returns the CRDs of the groups, or all CRDs if groups is empty.
func chosen(groups []string) ([]*unstructured.Unstructured, error) {
	crds, err := CRDs()
	if err != nil || len(groups) == 0 {
		return crds, err
	}
	known := map[string]bool{}
	crds = slices.DeleteFunc(crds, func(crd *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		known[group] = true
		return !slices.Contains(groups, group)
	})
	for _, group := range groups {
		if !known[group] {
			return nil, fmt.Errorf("InstallOptions.Groups: no CRD of this release is of group %q", group)
		}
	}
	return crds, nil
}

// refuse returns an error if crd must not replace present, or nil.
func refuse(present, crd *unstructured.Unstructured, override bool) error {
	if present.GetDeletionTimestamp() != nil {
		return fmt.Errorf("CRD %s is being deleted: wait until it is gone, then install again", crd.GetName())
	}
	version, ok := schemaVersion(present)
	ours, _ := schemaVersion(crd)
	switch {
	case !ok && !override:
		return &ForeignCRDError{Name: crd.GetName(), Diff: difference(present, crd)}
	case ok && version > ours:
		return &NewerCRDError{Name: crd.GetName(), Present: present.GetLabels()[SchemaVersionLabel], Ours: SchemaVersion}
	}
	return nil
}

// schemaVersion returns the schema version of a CRD of this module. It returns false if the
// label SchemaVersionLabel has no number.
func schemaVersion(crd *unstructured.Unstructured) (int, bool) {
	version, err := strconv.Atoi(crd.GetLabels()[SchemaVersionLabel])
	return version, err == nil
}

// install writes one CRD. present is the CRD as the API server has it, or nil if it does not
// exist. After a conflict it reads again and retries: an API server's own controllers write to
// new CRDs too.
func install(ctx context.Context, client dynamic.ResourceInterface, present, crd *unstructured.Unstructured, override bool) (Installed, error) {
	for {
		result, err := write(ctx, client, present, crd)
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return result, err
		}
		if present, err = client.Get(ctx, crd.GetName(), metav1.GetOptions{}); err != nil {
			return result, failed("get", crd.GetName(), err)
		}
		if err := refuse(present, crd, override); err != nil {
			return result, err
		}
	}
}

// write makes one attempt to write the CRD.
func write(ctx context.Context, client dynamic.ResourceInterface, present, crd *unstructured.Unstructured) (Installed, error) {
	result := Installed{Name: crd.GetName(), Change: Created}
	if present != nil {
		result.Change = Updated
		if _, ok := schemaVersion(present); ok {
			result.Before = present.GetLabels()[SchemaVersionLabel]
		}
		if !appliedByUs(present) {
			// An apply would merge two schemas, because fields of other managers stay. So first
			// replace the whole spec if InstallCRDs has not applied it.
			replacement := present.DeepCopy()
			replacement.Object["spec"] = crd.Object["spec"]
			if _, err := client.Update(ctx, replacement, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
				return result, failed("update", crd.GetName(), err)
			}
		}
	}
	applied, err := client.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		return result, failed("patch", crd.GetName(), err)
	}
	if present != nil && applied.GetResourceVersion() == present.GetResourceVersion() {
		result.Change = Unchanged
	}
	return result, nil
}

// appliedByUs reports whether InstallCRDs has applied the CRD before.
func appliedByUs(crd *unstructured.Unstructured) bool {
	return slices.ContainsFunc(crd.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	})
}
