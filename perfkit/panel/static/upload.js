/* A button that sends one file to the kernel; one that is too large stays here. */

export default {
  render({ model, el }) {
    const field = document.createElement("input");
    field.type = "file";
    field.accept = ".json,application/json";
    field.hidden = true;
    const button = document.createElement("button");
    button.className = "jupyter-button widget-button perfkit-upload";
    button.type = "button";
    const tell = () => {
      button.textContent = model.get("description");
      button.title = model.get("tooltip");
      button.disabled = model.get("disabled");
    };
    const send = async ([file]) => {
      if (!file) return;
      const told = { name: file.name, size: file.size };
      const large = file.size > model.get("largest");
      try {
        model.send(told, undefined, large ? [] : [await file.arrayBuffer()]);
      } catch {
        model.send(told);
      }
      // So that the same file can be chosen again once it was fixed.
      field.value = "";
    };
    button.addEventListener("click", () => field.click());
    field.addEventListener("change", () => send(field.files));
    model.on("change", tell);
    tell();
    el.append(button, field);
    return () => model.off("change", tell);
  },
};
