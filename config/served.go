// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/atoll-dev/atoll/region"
)

// servedInterval is the polling interval for installed CRDs. The API server
// usually serves them after one to three seconds.
const servedInterval = 250 * time.Millisecond

// awaitServed waits until all crds are established and in discovery, and their objects can be read.
func awaitServed(ctx context.Context, api region.API, crds []*unstructured.Unstructured) error {
	client := api.Dynamic().Resource(crdResource)
	var missing string
	for _, crd := range crds {
		missing = fmt.Sprintf("CRD %s is not established yet", crd.GetName())
		err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(ctx context.Context) (bool, error) {
			current, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, failed("get", crd.GetName(), err)
			}
			return established(current)
		})
		if err != nil {
			return unserved(ctx, missing, err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
		// Do not fail on the error: it may concern other groups, whose API servers are unreachable.
		_, lists, err := api.Discovery().ServerGroupsAndResources()
		absent := undiscovered(crds, lists)
		missing = fmt.Sprintf("discovery does not show %s yet", strings.Join(absent, ", "))
		if err != nil {
			missing += fmt.Sprintf(" (%v)", err)
		}
		return len(absent) == 0, nil
	})
	if err != nil {
		return unserved(ctx, missing, err)
	}
	for _, crd := range crds {
		if err := awaitStorage(ctx, api, crd); err != nil {
			return err
		}
	}
	return nil
}

// awaitStorage waits until objects of a discovered type can be read. For a second or two after
// discovery returns a type, the API server starts the storage of the type and answers requests with
// 429. If the client may not list the type, awaitStorage does not wait.
func awaitStorage(ctx context.Context, api region.API, crd *unstructured.Unstructured) error {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, typed); err != nil {
		return fmt.Errorf("CRD %s: %w", crd.GetName(), err)
	}
	resource := schema.GroupVersionResource{
		Group:    typed.Spec.Group,
		Version:  typed.Spec.Versions[0].Name,
		Resource: typed.Spec.Names.Plural,
	}
	missing := ""
	err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(ctx context.Context) (bool, error) {
		_, err := api.Dynamic().Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		missing = fmt.Sprintf("%s cannot be read yet (%v)", crd.GetName(), err)
		return err == nil || apierrors.IsForbidden(err), nil
	})
	return unserved(ctx, missing, err)
}

// unserved returns err. If ctx has ended, it returns the cause instead, with a text about the missing CRDs.
func unserved(ctx context.Context, missing string, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("CRDs were applied, but %s: %w", missing, context.Cause(ctx))
	}
	return err
}

// established reports whether the API server has accepted crd. It returns an error if the API
// server cannot accept crd, because another CRD has one of its names.
func established(crd *unstructured.Unstructured) (bool, error) {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, typed); err != nil {
		return false, fmt.Errorf("status of CRD %s: %w", crd.GetName(), err)
	}
	ready := false
	for _, c := range typed.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return false, fmt.Errorf("CRD %s is not accepted: %s: another CRD of the group has one of its names, remove that one",
				crd.GetName(), c.Message)
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			ready = true
		}
	}
	return ready, nil
}

// undiscovered returns the names of the crds that are missing in lists.
func undiscovered(crds []*unstructured.Unstructured, lists []*metav1.APIResourceList) []string {
	served := map[string]bool{}
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, resource := range list.APIResources {
			served[resource.Name+"."+group] = true
		}
	}
	var absent []string
	for _, crd := range crds {
		if !served[crd.GetName()] {
			absent = append(absent, crd.GetName())
		}
	}
	return absent
}
