// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// kubeconfigKey is the key of the kubeconfig in a Secret.
const kubeconfigKey = "kubeconfig"

var errNoKubeconfig = errors.New("the Secret has no key " + kubeconfigKey)

// kubeconfig returns the kubeconfig of a SyncTarget; nil if it has none.
func (c *Controller) kubeconfig(ctx context.Context, target *v1alpha1.SyncTarget) ([]byte, error) {
	if target.Spec.Kubeconfig != "" {
		return []byte(target.Spec.Kubeconfig), nil
	}
	ref := target.Spec.KubeconfigSecret
	if ref.Name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	secret, err := c.up.Dynamic().Resource(secrets).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", kubeconfigKey)
	var data []byte
	if err := json.Unmarshal([]byte(`"`+encoded+`"`), &data); err != nil || len(data) == 0 {
		return nil, fmt.Errorf("kubeconfig of Secret %s/%s: %w", ref.Namespace, ref.Name, errNoKubeconfig)
	}
	return data, nil
}

// refuse returns the conditions for a kubeconfig that is not accepted. It returns no conditions if the cluster is
// connected already, since that connection stays.
func (c *Controller) refuse(ctx context.Context, target *v1alpha1.SyncTarget, why error) []condition {
	logging.From(ctx).Info("A kubeconfig is not accepted", "target", target.Name, "reason", why.Error())
	if c.get(target.Name) != nil {
		return nil
	}
	return []condition{
		{v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonKubeconfigInvalid, why.Error()},
		{v1alpha1.SyncTargetConditionReachable, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, ""},
	}
}
