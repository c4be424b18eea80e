// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
)

// apply carries out a verdict. Each write fails if the object has changed since it was read: another Approver may have written meanwhile.
func (a *Approver) apply(ctx context.Context, obj, account *unstructured.Unstructured, r *certificatesv1.CertificateSigningRequest, v verdict) error {
	var err error
	switch v.action {
	case ignore:
		return nil
	case spend:
		err = a.spend(ctx, account, r.UID) // the change of the ServiceAccount queues the request again
	case approve, deny:
		err = a.decide(ctx, obj, v)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return loop.ErrBehind
	}
	if err != nil || v.action == spend {
		return err
	}
	e := DecideEvent{Target: v.target, TargetUID: a.uidOf(v.target), Request: r.Name, Requester: r.Spec.Username, Message: v.message}
	log := logging.From(ctx).WithValues("request", r.Name, "target", v.target, "requester", r.Spec.Username)
	if v.action == deny {
		log.Info("Denied the certificate of a cluster", "reason", v.message)
		a.opts.Observer.denied(ctx, e)
		return nil
	}
	log.Info("Approved the certificate of a cluster", "reason", v.message)
	a.opts.Observer.approved(ctx, e)
	return nil
}

// spend marks a token as used by a request, if nothing has changed the ServiceAccount since it was read.
func (a *Approver) spend(ctx context.Context, account *unstructured.Unstructured, request types.UID) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": account.GetUID(), "resourceVersion": account.GetResourceVersion(), "annotations": map[string]any{usedAnnotation: request},
	}})
	if err != nil {
		return err
	}
	_, err = a.upstream.Dynamic().Resource(accounts).Namespace(account.GetNamespace()).
		Patch(ctx, account.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("mark the token %s as used: %w", account.GetName(), err)
	}
	return nil
}

// decide approves or denies a request.
func (a *Approver) decide(ctx context.Context, obj *unstructured.Unstructured, v verdict) error {
	r, err := decode(obj)
	if err != nil {
		return err
	}
	kind := certificatesv1.CertificateApproved
	if v.action == deny {
		kind = certificatesv1.CertificateDenied
	}
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: v.reason, Message: loop.Shorten(v.message, loop.LongestMessage), LastUpdateTime: metav1.Now(),
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		return err
	}
	decided := &unstructured.Unstructured{Object: content}
	decided.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"))
	_, err = a.upstream.Dynamic().Resource(requests).Update(ctx, decided, metav1.UpdateOptions{FieldManager: fieldManager}, "approval")
	if err != nil {
		return fmt.Errorf("decide about the request %s: %w", r.Name, err)
	}
	return nil
}

// expire deletes the ServiceAccount of a token that has expired.
func (a *Approver) expire(ctx context.Context, name string) (time.Duration, error) {
	account, ok := a.tokens.Get(types.NamespacedName{Namespace: a.opts.Namespace, Name: name})
	if !ok || account.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	t := tokenIn(account)
	if left := time.Until(t.expires); left > 0 {
		return left + time.Second, nil
	}
	uid := account.GetUID()
	err := a.upstream.Dynamic().Resource(accounts).Namespace(a.opts.Namespace).
		Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("delete the token %s: %w", name, err)
	}
	if t.usedBy == "" {
		logging.From(ctx).Info("A token expired before it was used", "target", t.target)
		a.opts.Observer.expired(ctx, ExpireEvent{Target: t.target, TargetUID: a.uidOf(t.target)})
	}
	return 0, nil
}
