"""The group admissionregistration: import one of its versions."""
