// Conveniences only: every page and every form works without this file.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted");

  function byId(id) { return document.getElementById(id); }

  // One box selects the whole list below it.
  document.addEventListener("change", function (event) {
    if (event.target.dataset.all === undefined) { return; }
    event.target.closest("table").querySelectorAll("input[name=message]").forEach(function (each) {
      each.checked = event.target.checked;
    });
  });

  // Copies a text; where the browser gives no clipboard, the text is selected.
  document.addEventListener("click", function (event) {
    var from = byId(event.target.dataset.copy || ""), button = event.target;
    if (!from) { return; }
    if (!navigator.clipboard) { getSelection().selectAllChildren(from); return; }
    navigator.clipboard.writeText(from.textContent).then(
      function () { button.textContent = "Copied"; },
      function () { getSelection().selectAllChildren(from); });
  });

  // A list must not move while somebody points at it or is choosing something in it.
  function isChanged(field) {
    if (field.type === "checkbox") { return field.checked !== field.defaultChecked; }
    if (field.tagName !== "SELECT") { return field.value !== field.defaultValue; }
    var first = Array.from(field.options).findIndex(function (each) { return each.defaultSelected; });
    return field.selectedIndex !== Math.max(first, 0);
  }
  function whyPaused(element) {
    if (element.matches(":hover")) { return "Refresh is paused while the pointer is here."; }
    var filled = Array.from(element.querySelectorAll("input:not([type=hidden]), select")).some(isChanged);
    if (filled) { return "Refresh is paused while a form is filled in."; }
    return element.contains(document.activeElement) ? "Refresh is paused while the focus is here." : "";
  }
  document.addEventListener("htmx:beforeRequest", function (event) {
    if (event.detail.elt.id !== "live") { return; }
    var why = whyPaused(event.detail.elt), hint = byId("paused");
    hint.hidden = !why;
    hint.textContent = why;
    if (why || document.hidden) { event.preventDefault(); }
  });

  // A page whose refresh fails shows what was true then: it must say so.
  var fresh = new Date();
  document.addEventListener("htmx:afterRequest", function (event) {
    var hint = byId("stale"), status = event.detail.xhr.status;
    if (event.detail.requestConfig.elt.id !== "live" || !hint) { return; }
    if (event.detail.successful) { fresh = new Date(); }
    hint.hidden = event.detail.successful;
    hint.textContent = "Not refreshed since " + fresh.toISOString().slice(11, 19) + " UTC: "
      + (status ? "the API answers " + status : "the API does not answer")
      + ". What is below may have changed.";
  });

  // The local time of a moment is its title.
  function showTimes() {
    document.querySelectorAll("time[datetime]:not([data-age])").forEach(function (each) {
      each.title = new Date(each.dateTime).toLocaleString(undefined, { timeZoneName: "short" });
    });
  }
  document.addEventListener("htmx:afterSettle", showTimes);
  showTimes();
})();
