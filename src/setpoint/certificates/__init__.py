"""Certificates: thresholds with finite-sample guarantees. Needs numpy and scipy alone."""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily
from setpoint.certificates.certificate import Certificate, Claim, Estimate, Point
from setpoint.certificates.certification import certify
from setpoint.certificates.goals import goal_to_certify, refuse_trivial
from setpoint.certificates.regions import interval_at, is_plain_share
from setpoint.certificates.sample import CannotPromise

if TYPE_CHECKING:
    from setpoint.certificates.calibration_drift import (
        Exchangeability,
        MovingColumn,
        exchangeability,
        moving_columns,
    )
    from setpoint.certificates.classes import (
        ClassCertificate,
        certify_shifts,
        shifts_to_prove,
        why_unprovable,
    )
    from setpoint.certificates.drift import Check, Finding
    from setpoint.certificates.group_thresholds import (
        approval_rates,
        approvals,
        certify_groups,
        thresholds_to_prove,
    )
    from setpoint.certificates.labelling import LabelPlan, label_plan
    from setpoint.certificates.streams import certify_table
    from setpoint.certificates.three_way import ThreeWayCertificate, certify_three_way
    from setpoint.certificates.tie_breaking import row_numbers

__all__ = [
    "CannotPromise",
    "Certificate",
    "Check",
    "Claim",
    "ClassCertificate",
    "Estimate",
    "Exchangeability",
    "Finding",
    "LabelPlan",
    "MovingColumn",
    "Point",
    "ThreeWayCertificate",
    "approval_rates",
    "approvals",
    "certify",
    "certify_groups",
    "certify_shifts",
    "certify_table",
    "certify_three_way",
    "exchangeability",
    "goal_to_certify",
    "interval_at",
    "is_plain_share",
    "label_plan",
    "moving_columns",
    "refuse_trivial",
    "row_numbers",
    "shifts_to_prove",
    "thresholds_to_prove",
    "why_unprovable",
]

__getattr__ = import_lazily(__name__)
